// Square metres from four measured points on the ground, as the service has them.

import { peopleIn, withoutMasks } from "./density.js";

/** People per square metre up to which a level goes, its colour and what it means, as crowd safety has them. */
export const LEVELS = [
  [2, "#2fb457", "people walk freely"],
  [4, "#f2c200", "dense, moving slows down"],
  [5, "#ff8c1a", "full, moving is hard"],
  [Infinity, "#f0373f", "dangerous"],
];

/** The colour of so many people per square metre. */
export const colourOf = (perM2) => LEVELS.find(([most]) => perM2 <= most)[1];

/** Whether four corners and their distances, two of a rectangle or five of any figure, make a patch of ground. */
export function isGround({ corners, metres }) {
  const enough = corners.length === 4 && [2, 5].includes(metres.length) && metres.every((value) => value > 0);
  return enough && isConvex(corners) && isConvex(measured(metres));
}

/** Return a function that gives the square metres inside a zone, null where it has none or reaches the sky. */
export function metresIn(density, ground, masks) {
  if (!ground) return () => null;
  const { columns, rows, across, down } = density;
  const middle = [0, 1].map((axis) => ground.corners.reduce((sum, corner) => sum + corner[axis] / 4, 0));
  const shifted = ground.corners.map(([x, y]) => [x - middle[0], y - middle[1]]);
  const toGround = homography(shifted, measured(ground.metres));
  const place = (column, row) => {
    const seen = [Math.min(column, across) / across - middle[0], Math.min(row, down) / down - middle[1], 1];
    const [x, y, depth] = toGround.map((line) => line.reduce((sum, value, index) => sum + value * seen[index], 0));
    return depth > 0 ? [x / depth, y / depth] : null;
  };
  const area = { ...density, left: new Float64Array(rows * (columns + 1)) };
  const sky = { ...density, left: new Float64Array(rows * (columns + 1)) };
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const corners = [[0, 0], [1, 0], [1, 1], [0, 1]].map(([right, below]) => place(column + right, row + below));
      const above = corners.includes(null);
      const index = row * (columns + 1) + column;
      area.left[index + 1] = area.left[index] + (above ? 0 : Math.abs(size(corners)));
      sky.left[index + 1] = sky.left[index] + above;
    }
  }
  const [onGround, inSky] = [area, sky].map((part) => withoutMasks(part, masks));
  return (corners) => {
    const metres = peopleIn(onGround, corners);
    return metres > 0 && peopleIn(inSky, corners) < 1 ? metres : null;
  };
}

/** The corners in metres. */
function measured(metres) {
  if (metres.length === 2) return [[0, 0], [metres[0], 0], metres, [0, metres[1]]];
  const [first, second, third, fourth, diagonal] = metres;
  const apex = (one, other, side) => {
    const along = (diagonal ** 2 + one ** 2 - other ** 2) / (2 * diagonal);
    return [along, side * Math.sqrt(one ** 2 - along ** 2)];
  };
  return [[0, 0], apex(first, second, 1), [diagonal, 0], apex(fourth, third, -1)];
}

function isConvex(corners) {
  const turns = corners.map((_, index) => size([0, 1, 2].map((step) => corners[(index + step) % corners.length])));
  return turns.every((turn) => turn > 0) || turns.every((turn) => turn < 0);
}

/** The area of a figure; below 0 where its corners go around the other way. */
function size(corners) {
  return corners.reduce((sum, [x, y], index) => {
    const [nextX, nextY] = corners[(index + 1) % corners.length];
    return sum + (x * nextY - nextX * y) / 2;
  }, 0);
}

/** The matrix that takes four points around the origin to four others: eight equations, solved by elimination. */
function homography(from, to) {
  const rows = from.flatMap(([x, y], index) => {
    const [u, v] = to[index];
    return [[x, y, 1, 0, 0, 0, -u * x, -u * y, u], [0, 0, 0, x, y, 1, -v * x, -v * y, v]];
  });
  for (let step = 0; step < 8; step += 1) {
    const best = rows.slice(step).reduce((most, row) => (Math.abs(row[step]) > Math.abs(most[step]) ? row : most));
    rows.splice(rows.indexOf(best), 1, rows[step]);
    rows[step] = best.map((value) => value / best[step]);
    rows.forEach((row, index) => {
      if (index !== step) rows[index] = row.map((value, column) => value - row[step] * rows[step][column]);
    });
  }
  const [a, b, c, d, e, f, g, h] = rows.map((row) => row[8]);
  return [[a, b, c], [d, e, f], [g, h, 1]];
}
