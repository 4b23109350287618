// The strip chart: people over time, one line for all and one for each zone.

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 44;
const RIGHT = 14;
const TOP = 10;
const BOTTOM = 22;

/** Draw `frames` of a video of `duration` seconds into the box; `chosen` is the index of the frame on show. */
export function drawChart(box, { frames, zones, duration, chosen }) {
  const { clientWidth: width, clientHeight: height } = box;
  const top = niceCeiling(Math.max(1, ...frames.map((frame) => frame.count)));
  const x = (time) => LEFT + ((width - LEFT - RIGHT) * time) / Math.max(duration, 1e-9);
  const y = (people) => height - BOTTOM - ((height - TOP - BOTTOM) * people) / top;
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (const people of [0, top / 2, top]) {
    svg.append(node("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(people), y2: y(people) }));
    svg.append(text(LEFT - 8, y(people) + 4, "end", String(people)));
  }
  svg.append(text(LEFT, height - 6, "start", clock(0)), text(width - RIGHT, height - 6, "end", clock(duration)));
  zones.forEach((zone) => svg.append(line(frames, (frame) => [x(frame.time), y(frame.countIn(zone.corners))], zone.colour)));
  svg.append(line(frames, (frame) => [x(frame.time), y(frame.count)]));
  const frame = frames[chosen];
  if (frame) {
    svg.append(node("line", { class: "cursor", x1: x(frame.time), x2: x(frame.time), y1: TOP, y2: height - BOTTOM }));
    svg.append(node("circle", { cx: x(frame.time), cy: y(frame.count), r: 4.5 }));
  }
  box.replaceChildren(svg);
  box.setAttribute("aria-valuemax", Math.max(frames.length - 1, 0));
  box.setAttribute("aria-valuenow", chosen);
  box.setAttribute("aria-valuetext", frame ? `${clock(frame.time)}: ${Math.round(frame.count)} people` : "no frame yet");
}

/** The index of the frame nearest to where the chart was pressed. */
export function frameAt(box, event, frames, duration) {
  const { left } = box.getBoundingClientRect();
  const time = ((event.clientX - left - LEFT) / (box.clientWidth - LEFT - RIGHT)) * duration;
  const distance = (index) => Math.abs(frames[index].time - time);
  return frames.reduce((best, _, index) => (distance(index) < distance(best) ? index : best), 0);
}

/** A time as a video player writes it. */
export function clock(seconds) {
  const whole = Math.floor(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const tenth = seconds % 1 >= 0.05 ? (seconds % 1).toFixed(1).slice(1) : "";
  return (parts[0] ? [parts[0], String(parts[1]).padStart(2, "0")] : [parts[1]]).concat(String(parts[2]).padStart(2, "0")).join(":") + tenth;
}

function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [2, 4, 6, 10].map((step) => step * power).find((step) => step >= value);
}

function line(frames, place, colour) {
  const made = node("polyline", { points: frames.map((frame) => place(frame).join(",")).join(" ") });
  if (colour) made.style.stroke = colour;
  else made.setAttribute("class", "all");
  return made;
}

function text(x, y, anchor, content) {
  const made = node("text", { x, y, "text-anchor": anchor });
  made.textContent = content;
  return made;
}

function node(kind, attributes) {
  const made = document.createElementNS(SVG, kind);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  return made;
}
