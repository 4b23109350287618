// Zones on the picture: drawn with a pointer or made by a button, their corners moved by pointer or arrow keys.
// An area is a zone, a mask, in which nobody is counted, or four measured corners of the ground.

import { LEVELS, colourOf, isGround } from "./ground.js";

const COLOURS = ["#19a7c4", "#5aa51b", "#e0559a", "#d98308", "#8b7cf6", "#3f8efc"];
const SVG = "http://www.w3.org/2000/svg";
const STEP = 0.01; // of the picture's side, for one press of an arrow key
const CLOSE = 14; // pixels on screen within which a click on the first corner ends a polygon
const DRAG = 8; // pixels on screen from which a press and move is a rectangle
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const HINT = "Corners can be dragged, or moved with the arrow keys.";
const DRAWING_HINT =
  "Drag for a rectangle, or click corner after corner and end at the first one or with Enter. Esc gives up.";

const KINDS = ["zone", "mask", "ground"];
const DISTANCES = ["1–2", "2–3", "3–4", "4–1", "1–3"]; // between corners of the ground

const MEASURE = "Distances between its corners, in metres. The first two are enough for a rectangle.";
const MISFIT = "No ground yet: give the first two for a rectangle, or all five of four corners that go around it.";

const find = (id) => document.getElementById(id);
const clip = (value) => Math.min(Math.max(value, 0), 1);

/**
 * Keep the zones, draw them, and call `changed` whenever one is. `countIn` gives the people inside corners, `perM2In`
 * those per square metre, null where the ground is not known, and `rangeOf` the interval of a count as text.
 */
export function makeZones({ countIn, perM2In, rangeOf, changed }) {
  const zones = [];
  const stage = find("stage");
  let made = 0;
  let draft = null; // corners of the zone being drawn
  let pressed = null; // where the pointer went down

  function add(corners, about = {}) {
    made += 1;
    const colour = COLOURS[(made - 1) % COLOURS.length];
    const zone = { name: `Zone ${made}`, corners, kind: "zone", metres: [], colour, ...about };
    zones.push(zone);
    rebuild();
    changed();
    return zone;
  }

  function remove(zone) {
    zones.splice(zones.indexOf(zone), 1);
    rebuild();
    changed();
    find("draw").focus();
  }

  // Drawing

  function setDrawing(on) {
    draft = on ? [] : null;
    pressed = null;
    stage.classList.toggle("drawing", on);
    find("draw").setAttribute("aria-pressed", String(on));
    find("hint").textContent = on ? DRAWING_HINT : HINT;
    refresh();
  }

  function finish() {
    const corners = draft;
    setDrawing(false);
    if (corners && corners.length > 2) say(add(corners));
  }

  const place = (event) => {
    const box = stage.getBoundingClientRect();
    return [clip((event.clientX - box.left) / box.width), clip((event.clientY - box.top) / box.height)];
  };
  const far = (a, b) => Math.hypot((a[0] - b[0]) * stage.clientWidth, (a[1] - b[1]) * stage.clientHeight);
  const rectangle = ([x0, y0], [x1, y1]) => [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];

  stage.addEventListener("pointerdown", (event) => {
    if (draft === null || event.button !== 0) return;
    event.preventDefault();
    stage.setPointerCapture(event.pointerId);
    pressed = place(event);
  });
  stage.addEventListener("pointermove", (event) => {
    if (draft === null) return;
    const here = place(event);
    const dragged = pressed && draft.length === 0 && far(pressed, here) > DRAG;
    drawOutlines(dragged ? [...rectangle(pressed, here), pressed] : [...draft, here]);
  });
  stage.addEventListener("pointerup", (event) => {
    if (draft === null || pressed === null) return;
    const here = place(event);
    if (draft.length === 0 && far(pressed, here) > DRAG) {
      draft = rectangle(pressed, here);
      finish();
    } else if (draft.length > 2 && far(draft[0], here) < CLOSE) {
      finish();
    } else {
      draft.push(here);
      pressed = null;
      refresh();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (draft === null) return;
    if (event.key === "Escape") setDrawing(false);
    if (event.key === "Enter" && draft.length > 2) {
      event.preventDefault();
      finish();
    }
  });
  find("draw").addEventListener("click", () => setDrawing(draft === null));
  find("rectangle").addEventListener("click", () => {
    setDrawing(false);
    const corner = 0.25 + 0.06 * (zones.length % 5); // each a little further, so that no name hides another
    const zone = add(rectangle([corner, corner], [corner + 0.5, corner + 0.5]));
    find("handles").querySelector(`[data-zone="${zones.indexOf(zone)}"]`).focus();
    say(zone);
  });

  // Showing

  function rebuild() {
    find("zones").replaceChildren(...zones.map(listItem));
    const handles = zones.flatMap((zone, index) => zone.corners.map((_, corner) => handle(zone, index, corner)));
    // Corners lie over names: on a small screen a name covers much of its zone.
    find("handles").replaceChildren(...zones.map(() => element("span", "tag")), ...handles);
    refresh();
  }

  function listItem(zone) {
    const item = element("li");
    const dot = element("i");
    dot.style.background = zone.colour;
    const name = element("input");
    name.value = zone.name;
    name.maxLength = 40;
    name.setAttribute("aria-label", "Name of the zone");
    name.addEventListener("input", () => {
      zone.name = name.value;
      refresh();
      changed();
    });
    const bin = element("button");
    bin.type = "button";
    bin.textContent = "✕";
    bin.setAttribute("aria-label", `Remove ${zone.name}`);
    bin.addEventListener("click", () => remove(zone));
    const kind = element("select");
    kind.append(...KINDS.map((each) => new Option(each)));
    kind.options[KINDS.indexOf("ground")].disabled = zone.corners.length !== 4;
    kind.value = zone.kind;
    kind.setAttribute("aria-label", `What ${zone.name} is for`);
    kind.addEventListener("change", () => {
      if (kind.value === "ground") noGround();
      zone.kind = kind.value;
      rebuild();
      changed();
    });
    item.append(dot, name, element("output"), kind, bin);
    if (zone.kind === "ground") item.append(distances(zone));
    return item;
  }

  /** Make way for another ground: there is one at most. */
  function noGround() {
    zones.filter((each) => each.kind === "ground").forEach((each) => (each.kind = "zone"));
  }

  /** The fields for the distances between the corners: two make a rectangle, all five any four points. */
  function distances(zone) {
    const fields = element("div", "metres");
    DISTANCES.forEach((between, index) => {
      const field = element("label");
      const input = element("input");
      Object.assign(input, { type: "number", min: "0", step: "any", inputMode: "decimal", value: zone.metres[index] ?? "" });
      input.addEventListener("input", () => {
        zone.metres[index] = input.valueAsNumber;
        changed();
        refresh();
      });
      field.append(`${between} `, input, " m");
      fields.append(field);
    });
    fields.append(element("p", "dim small help"), levels());
    return fields;
  }

  /** What the colours of zones on measured ground stand for. */
  function levels() {
    const legend = element("p", "levels small");
    LEVELS.forEach(([most, colour, words], index) => {
      const level = element("span");
      level.style.borderColor = colour;
      level.textContent = Number.isFinite(most) ? `≤ ${most}/m²` : `> ${LEVELS[index - 1][0]}/m²`;
      level.title = words;
      legend.append(level);
    });
    return legend;
  }

  /** The ground's corners and distances, or null while they do not fit together. */
  function ground() {
    const zone = zones.find((each) => each.kind === "ground");
    const given = DISTANCES.map((_, index) => (zone?.metres[index] > 0 ? zone.metres[index] : 0));
    const metres = given.slice(0, given.findLastIndex((value) => value > 0) + 1); // with one left out they are no ground
    const found = zone && { corners: zone.corners, metres };
    return found && isGround(found) ? found : null;
  }

  function handle(zone, index, corner) {
    const button = element("button", "handle");
    button.type = "button";
    button.dataset.zone = index;
    const move = (x, y) => {
      zone.corners[corner] = [clip(x), clip(y)];
      refresh();
      changed();
    };
    button.addEventListener("keydown", (event) => {
      const arrow = ARROWS[event.key];
      if (!arrow) return;
      event.preventDefault();
      const step = event.shiftKey ? 5 * STEP : STEP;
      move(zone.corners[corner][0] + step * arrow[0], zone.corners[corner][1] + step * arrow[1]);
      say(zone);
    });
    button.addEventListener("pointerdown", (event) => {
      if (draft === null) button.setPointerCapture(event.pointerId);
    });
    button.addEventListener("pointermove", (event) => {
      if (button.hasPointerCapture(event.pointerId)) move(...place(event));
    });
    return button;
  }

  /** Bring positions and numbers up to date, without making anything anew that may have the focus. */
  function refresh() {
    const handles = [...find("handles").querySelectorAll(".handle")];
    const tags = [...find("handles").querySelectorAll(".tag")];
    zones.forEach((zone, index) => {
      const dense = zone.kind === "zone" ? perM2In(zone.corners) : null;
      const words = wordsFor(zone, countIn, perM2In);
      const [people, perM2 = ""] = zone.kind === "zone" ? words.split(" · ") : [""];
      const output = find("zones").children[index].querySelector("output");
      const small = element("small", "dim");
      small.textContent = zone.kind === "zone" ? rangeOf(countIn(zone.corners)) : "";
      const parts = [people, small.textContent && small, perM2].filter(Boolean); // the interval is that of the people
      output.replaceChildren(...parts.flatMap((part) => [" ", part]).slice(1));
      output.style.borderColor = tags[index].style.borderColor = dense === null ? "" : colourOf(dense);
      tags[index].textContent = `${zone.name} · ${words}`;
      tags[index].hidden = zone.kind === "ground"; // its corners have numbers
      at(tags[index], [0, 1].map((axis) => mean(zone.corners.map((corner) => corner[axis]))));
      keepInside(tags[index]);
      zone.corners.forEach((corner, order) => {
        const button = handles.shift();
        const [x, y] = corner.map((value) => Math.round(100 * value));
        const about = `${zone.name}, corner ${order + 1} of ${zone.corners.length}: ${x} % across, ${y} % down`;
        button.setAttribute("aria-label", about);
        button.textContent = zone.kind === "ground" ? order + 1 : "";
        at(button, corner);
      });
    });
    const help = find("zones").querySelector(".help");
    const begun = zones.some(({ kind, metres }) => kind === "ground" && metres.some((value) => value > 0));
    if (help) help.textContent = begun && !ground() ? MISFIT : MEASURE;
    find("save-zones").disabled = zones.length === 0;
    drawOutlines(draft);
  }

  function drawOutlines(open) {
    const shapes = zones.flatMap((zone) => [
      shape("polygon", zone.corners), shape("polygon", zone.corners, zone.colour, zone.kind),
    ]);
    if (open?.length) shapes.push(shape("polyline", open), shape("polyline", open, "#fff"));
    find("outlines").replaceChildren(...shapes);
  }

  let speech;
  function say(zone) {
    clearTimeout(speech);
    const words = () => (find("spoken").textContent = `${zone.name}: ${label(countIn(zone.corners))} people`);
    speech = setTimeout(words, 300);
  }

  /** The file that `gbdgc count --zones` takes; equal names are told apart. */
  function toFile() {
    const file = { relative: true, zones: {}, masks: {} };
    zones.forEach((zone) => {
      if (zone.kind === "ground") return;
      const taken = (name) => name in file.zones || name in file.masks || name === "ground";
      const base = zone.name.trim() || "Zone";
      let name = base;
      for (let number = 2; taken(name); number += 1) name = `${base} ${number}`;
      file[`${zone.kind}s`][name] = rounded(zone.corners);
    });
    const measured = ground();
    return measured ? { ...file, ground: { ...measured, corners: rounded(measured.corners) } } : file;
  }

  /** Take zones and masks from such a file; corners in pixels are of a picture of this size. */
  function fromFile(content, width, height) {
    const wrapped = ["zones", "masks"].some((name) => content[name] && !Array.isArray(content[name]?.[0]));
    const { zones: own = {}, masks = {}, relative = false, ground: measured } = wrapped ? content : { zones: content };
    const named = (part) => (Array.isArray(part) ? part.map(({ name, polygon }) => [name, polygon]) : Object.entries(part));
    const scale = relative ? [1, 1] : [width, height];
    const inShares = (polygon) => polygon.map((corner) => corner.map((value, axis) => clip(value / scale[axis])));
    const read = [own, masks].flatMap((part, kind) => named(part).map(([name, polygon]) => {
      const corners = inShares(polygon);
      if (corners.length < 3 || corners.some((corner) => corner.length !== 2 || !corner.every(Number.isFinite))) {
        throw new TypeError("a polygon needs three corners");
      }
      return [corners, { name: String(name), kind: KINDS[kind] }];
    }));
    if (measured) {
      const patch = { corners: inShares(measured.corners), metres: measured.metres };
      if (!isGround(patch)) throw new TypeError("no ground");
      read.push([patch.corners, { name: "ground", kind: "ground", metres: [...patch.metres] }]);
    }
    if (read.length === 0) throw new TypeError("no zones");
    if (measured) noGround();
    read.forEach(([corners, about]) => add(corners, about));
  }

  return {
    list: zones,
    masks: () => zones.filter((zone) => zone.kind === "mask").map((zone) => zone.corners),
    ground,
    toFile,
    fromFile,
    refresh,
    clear() {
      zones.length = 0;
      made = 0;
      setDrawing(false);
      rebuild();
    },
  };
}

/** A number of people as it is written in zones: small ones with a decimal. */
const label = (people) => (people === null ? "…" : people.toFixed(people < 9.95 ? 1 : 0));

/** What is written beside a zone's name. */
export function wordsFor({ kind, corners }, countIn, perM2In) {
  if (kind !== "zone") return "not counted";
  const dense = perM2In(corners);
  return dense === null ? label(countIn(corners)) : `${label(countIn(corners))} · ${dense.toFixed(1)}/m²`;
}

const rounded = (corners) => corners.map((corner) => corner.map((value) => +value.toFixed(5)));
export const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function at(thing, [x, y]) {
  thing.style.left = `${100 * x}%`;
  thing.style.top = `${100 * y}%`;
}

/** Keep a tag, which is centred on its place, from being cut at the picture's side. */
function keepInside(tag) {
  const half = `${Math.ceil(tag.offsetWidth / 2) + 6}px`;
  tag.style.left = `clamp(${half}, ${tag.style.left}, calc(100% - ${half}))`;
}

function element(kind, name = "") {
  const made = document.createElement(kind);
  made.className = name;
  return made;
}

function shape(kind, corners, colour, name = "") {
  const made = document.createElementNS(SVG, kind);
  made.setAttribute("points", corners.map((corner) => corner.join(",")).join(" "));
  made.setAttribute("class", colour ? name : "halo");
  if (colour) made.style.stroke = colour;
  return made;
}
