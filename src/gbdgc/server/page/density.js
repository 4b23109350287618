// The density on its grid, and the people inside a polygon: as the service counts them, but at once.

const LINES = 8; // scan lines for each row of cells
const MASK_LINES = 4; // places along each side of a cell that a mask may cover

/** Unpack what the service sent. `left` holds, for each row, how many people are left of each grid line. */
export function unpack({ people, columns, rows, cell }, width, height) {
  const bytes = Uint8Array.from(atob(people), (letter) => letter.charCodeAt(0));
  const cells = new Float32Array(bytes.buffer);
  const left = new Float32Array(rows * (columns + 1));
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const place = row * (columns + 1) + column;
      left[place + 1] = left[place] + cells[row * columns + column];
    }
  }
  // The last row and column of cells end at the picture's border: in cells, the picture is this large.
  return { left, columns, rows, across: width / cell, down: height / cell };
}

/** The density without the people inside masks, each a polygon with corners from 0 to 1. */
export function withoutMasks(density, masks) {
  if (masks.length === 0) return density;
  const { left, columns, rows, across, down } = density;
  const kept = new Float32Array(left.length);
  const share = (column, row) => masks.reduce((rest, corners) => rest * (1 - covered(corners, column, row)), 1);
  const covered = (corners, column, row) => {
    let inside = 0;
    for (let line = 0; line < MASK_LINES ** 2; line += 1) {
      const x = column + ((line % MASK_LINES) + 0.5) / MASK_LINES;
      const y = row + (Math.floor(line / MASK_LINES) + 0.5) / MASK_LINES;
      inside += isInside(corners, x / across, y / down);
    }
    return inside / MASK_LINES ** 2;
  };
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const place = row * (columns + 1) + column;
      kept[place + 1] = kept[place] + (left[place + 1] - left[place]) * share(column, row);
    }
  }
  return { ...density, left: kept };
}

/** Whether a polygon winds around a place. */
export function isInside(corners, x, y) {
  let winding = 0;
  for (const [crossing, turn] of crossings(corners, y)) if (crossing <= x) winding += turn;
  return winding !== 0;
}

/** Everybody in the picture. */
export function total({ left, columns, rows }) {
  let sum = 0;
  for (let row = 0; row < rows; row += 1) sum += left[row * (columns + 1) + columns];
  return sum;
}

/** People inside a polygon with corners from 0 to 1; what it winds around counts, once. */
export function peopleIn(density, corners) {
  const { rows, across, down } = density;
  const outline = corners.map(([x, y]) => [x * across, y * down]);
  let total = 0;
  for (let row = 0; row < rows; row += 1) {
    const tall = Math.min(1, down - row);
    for (let line = 0; line < LINES; line += 1) {
      const y = row + (tall * (line + 0.5)) / LINES;
      let winding = 0;
      let from = 0;
      for (const [x, turn] of crossings(outline, y)) {
        if (winding === 0) from = x;
        winding += turn;
        if (winding === 0) total += (leftOf(density, row, x) - leftOf(density, row, from)) / LINES;
      }
    }
  }
  return total;
}

function crossings(outline, y) {
  const found = [];
  outline.forEach(([x0, y0], index) => {
    const [x1, y1] = outline[(index + 1) % outline.length];
    if (y0 <= y !== y1 <= y) found.push([x0 + ((y - y0) / (y1 - y0)) * (x1 - x0), y1 > y0 ? 1 : -1]);
  });
  return found.sort((a, b) => a[0] - b[0]);
}

function leftOf({ left, columns, across }, row, x) {
  const place = Math.min(Math.max(x, 0), across);
  const column = Math.min(Math.floor(place), columns - 1);
  const share = (place - column) / Math.min(1, across - column);
  const start = row * (columns + 1) + column;
  return left[start] * (1 - share) + left[start + 1] * share;
}

/** The interval that holds a true number nine times in ten, or null where the model does not know. */
export function intervalAround(people, spread) {
  if (people === null || !spread) return null;
  return [spread.low, spread.high].map((factor) => Math.max(0, (Math.max(people, 0) + spread.offset) * factor - spread.offset));
}

/** An interval in whole people; nothing where there is none. */
export const rangeText = (interval) => interval?.map((end) => Math.round(end).toLocaleString("en")).join("–") ?? "";
