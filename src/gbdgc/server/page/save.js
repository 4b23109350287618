// Saving what is on show: the picture with its overlay as PNG, the numbers as CSV.

import { clock } from "./chart.js";
import { intervalAround, rangeText } from "./density.js";
import { colourOf } from "./ground.js";
import { mean, wordsFor } from "./zones.js";

const FOOTER = "#111217";
const MIN_WIDTH = 320; // a narrower picture stands in the middle above a footer that can be read
const FONT = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/** Draw picture, overlay and zones, and below them the number and the colour bar; returns a canvas. */
export function compose({ picture, layer, bar, opacity, shown, zones, dots }) {
  const scale = Math.max(1, 640 / Math.max(picture.width, picture.height));
  const width = Math.round(picture.width * scale);
  const height = Math.round(picture.height * scale);
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(width, MIN_WIDTH);
  const unit = Math.min(canvas.width / 480, Math.max(1, canvas.width / 1200));
  canvas.height = height + Math.round(60 * unit);
  const context = canvas.getContext("2d");
  context.fillStyle = FOOTER;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.translate(Math.floor((canvas.width - width) / 2), 0);
  context.imageSmoothingQuality = "high";
  context.filter = `grayscale(${0.75 * opacity})`;
  context.drawImage(picture, 0, 0, width, height);
  context.filter = "none";
  context.globalAlpha = opacity;
  context.drawImage(layer, 0, 0, width, height);
  context.globalAlpha = 1;
  if (dots) drawDots(context, shown, width / shown.answer.width);
  zones.forEach((zone) => drawOutline(context, zone, shown, width, height, unit));
  zones.filter((zone) => zone.kind !== "ground").forEach((zone) => drawTag(context, zone, shown, width, height, unit));
  context.resetTransform();
  drawFooter(context, { bar, shown, top: height, unit });
  return canvas;
}

/** The diameter of a dot, in pixels of the picture: small enough to leave room between heads. */
export function dotSize(heads, width, height) {
  const spacing = Math.sqrt((width * height) / Math.max(heads, 1));
  return Math.min(Math.max(spacing / 4.5, 3), Math.max(6, Math.max(width, height) / 130));
}

function drawDots(context, { points, answer: { width, height } }, scale) {
  const size = dotSize(points.length, width, height) * scale;
  for (const [colour, diameter] of [["rgb(0 0 0 / 75%)", 1.5 * size], ["#40ffd6", size]]) {
    context.fillStyle = colour;
    for (const [x, y] of points) {
      context.beginPath();
      context.arc(x * scale, y * scale, diameter / 2, 0, 2 * Math.PI);
      context.fill();
    }
  }
}

function drawOutline(context, zone, { perM2In }, width, height, unit) {
  context.beginPath();
  zone.corners.forEach(([x, y]) => context.lineTo(x * width, y * height));
  context.closePath();
  context.lineJoin = "round";
  if (zone.kind === "mask") {
    context.fillStyle = "rgb(12 10 18 / 72%)";
    context.fill();
  }
  const dense = zone.kind === "zone" ? perM2In(zone.corners) : null;
  for (const [colour, thickness] of [["rgb(0 0 0 / 65%)", 5.5], [dense === null ? zone.colour : colourOf(dense), 2.5]]) {
    context.strokeStyle = colour;
    context.lineWidth = thickness * unit;
    context.stroke();
  }
}

function drawTag(context, zone, { countIn, perM2In }, width, height, unit) {
  const middle = [width, height].map((side, axis) => side * mean(zone.corners.map((corner) => corner[axis])));
  const words = `${zone.name} · ${wordsFor(zone, countIn, perM2In)}`;
  context.font = `600 ${14 * unit}px ${FONT}`;
  const half = context.measureText(words).width / 2 + 10 * unit;
  context.fillStyle = FOOTER;
  context.beginPath();
  context.roundRect(middle[0] - half, middle[1] - 13 * unit, 2 * half, 26 * unit, 13 * unit);
  context.fill();
  write(context, words, middle[0], middle[1], "center", "#fff");
}

function drawFooter(context, { bar, shown, top, unit }) {
  const { width } = context.canvas;
  const middle = top + 30 * unit;
  const number = Math.round(shown.count).toLocaleString("en");
  const people = number === "1" ? "person" : "people";
  context.font = `700 ${30 * unit}px ${FONT}`;
  write(context, number, 18 * unit, middle, "left", "#fafafc");
  const end = 27 * unit + context.measureText(number).width;
  context.font = `${16 * unit}px ${FONT}`;
  const words = shown.time === undefined ? people : `${people} at ${clock(shown.time)}`;
  const range = rangeText(intervalAround(shown.count, shown.answer.spread));
  write(context, words, end, range ? middle - 10 * unit : middle, "left", "#a4a7b2");
  write(context, range, end, middle + 10 * unit, "left", "#a4a7b2");
  const length = 190 * unit;
  const left = width - 18 * unit - length;
  context.fillStyle = "#26282f";
  context.fillRect(left, top + 27 * unit, length, 9 * unit);
  context.drawImage(bar, left, top + 27 * unit, length, 9 * unit);
  context.font = `${11 * unit}px ${FONT}`;
  write(context, `people per ${shown.square} × ${shown.square} px`, left + length / 2, top + 17 * unit, "center", "#a4a7b2");
  for (const [share, anchor] of [[0, "left"], [0.5, "center"], [1, "right"]]) {
    write(context, short(share ** 2 * shown.peak), left + share * length, top + 46 * unit, anchor, "#fafafc");
  }
}

function write(context, words, x, y, anchor, colour) {
  context.textAlign = anchor;
  context.textBaseline = "middle";
  context.fillStyle = colour;
  context.fillText(words, x, y);
}

/** Two digits that count, as on the colour bar. */
export const short = (value) => String(Number(value.toPrecision(2)));

/** One row per frame (or the one picture); a column per zone, its interval, and people per m² where the ground is known. */
export function table({ name, frames, zones: all }) {
  const zones = all.filter((zone) => zone.kind === "zone");
  const measured = all.some((zone) => zone.kind === "ground") ? zones : [];
  const timed = frames[0]?.time !== undefined;
  const known = frames.some((frame) => frame.answer.spread);
  const ends = known ? ["low", "high"] : [];
  const withEnds = (people, { answer }) => [people, ...(known ? intervalAround(people, answer.spread) : [])].map((value) => value.toFixed(2));
  const columns = zones.flatMap((zone) => [zone.name, ...ends.map((end) => `${zone.name} ${end}`)]);
  const head = [timed ? "seconds" : "picture", "people", ...ends, ...columns, ...measured.map((zone) => `${zone.name} per m²`)];
  const rows = frames.map((frame) => [
    timed ? frame.time.toFixed(2) : name,
    ...withEnds(frame.count, frame),
    ...zones.flatMap((zone) => withEnds(frame.countIn(zone.corners), frame)),
    ...measured.map((zone) => frame.perM2In(zone.corners)?.toFixed(3) ?? ""),
  ]);
  return [head, ...rows].map((row) => row.map(quoted).join(",") + "\r\n").join("");
}

function quoted(cell) {
  // A spreadsheet takes what begins so for a formula.
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Hand a blob to the user as a file. */
export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
