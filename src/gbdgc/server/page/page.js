// The page: takes a file, has it counted, and shows what came back.

import * as api from "./api.js";
import { clock, drawChart, frameAt } from "./chart.js";
import { intervalAround, isInside, peopleIn, rangeText, total, unpack, withoutMasks } from "./density.js";
import { metresIn } from "./ground.js";
import { compose, dotSize, download, short, table } from "./save.js";
import { grab, openVideo } from "./video.js";
import { makeZones } from "./zones.js";

const LARGEST_SHOWN = 2048; // pixels on the longer side of the picture on show
const MOST_FRAMES = 1000;

const find = (id) => document.getElementById(id);

const state = { name: "", frames: [], chosen: -1, duration: 0, masks: "[[],null]", limits: {} };
let job = new AbortController(); // of the file at work; a new one ends it
let player = null;

const shown = () => state.frames[state.chosen];
const isVideo = () => player !== null;
const zones = makeZones({
  countIn: (corners) => shown()?.countIn(corners) ?? null,
  rangeOf: (people) => rangeText(intervalAround(people, shown()?.answer.spread)),
  perM2In: (corners) => shown()?.perM2In(corners) ?? null,
  changed: zonesChanged,
});

/** Count the frames anew without who is inside masks, on the ground as it is measured. */
function zonesChanged() {
  const masks = JSON.stringify([zones.masks(), zones.ground()]);
  if (masks !== state.masks) {
    state.masks = masks;
    state.frames.forEach(applyMasks);
    if (shown()) {
      showNumber();
      showDots(shown());
      zones.refresh();
    }
  }
  if (isVideo()) showChart();
}

function applyMasks(frame) {
  const masks = zones.masks();
  const { answer } = frame;
  const density = withoutMasks(frame.density, masks);
  frame.count = masks.length ? total(density) : answer.count;
  frame.points = answer.points.filter(([x, y]) => !masks.some((corners) => isInside(corners, x / answer.width, y / answer.height)));
  frame.countIn = (corners) => peopleIn(density, corners);
  frame.perM2In = (corners) => {
    const area = areaIn(frame.density, corners);
    return area && peopleIn(density, corners) / area;
  };
}

let measured = {}; // the ground, as frames of one size see it

function areaIn(density, corners) {
  const key = `${state.masks} ${density.across} ${density.down}`;
  if (measured.key !== key) measured = { key, inside: metresIn(density, zones.ground(), zones.masks()) };
  return measured.inside(corners);
}

// What comes in

async function open(file) {
  job.abort();
  job = new AbortController();
  const { signal } = job;
  player?.close();
  player = null;
  Object.assign(state, { name: file.name || "picture", frames: [], chosen: -1, duration: 0, masks: "[[],null]" });
  zones.clear();
  showError(null);
  try {
    await (file.type.startsWith("video/") ? openAsVideo(file, signal) : openAsPicture(file, signal));
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof api.Problem)) console.error(error);
    showError(error);
  }
}

async function openAsPicture(file, signal) {
  if (file.size > state.limits.upload_bytes) {
    const megabytes = (state.limits.upload_bytes / 1e6).toFixed(0);
    throw new api.Problem(`${state.name}: over the limit of ${megabytes} MB.`, "Choose a smaller picture.");
  }
  // A browser that cannot show a format, such as TIFF, still gets it counted: then over a dark ground.
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (signal.aborted) return;
  find("timeline").hidden = true;
  if (bitmap) showPicture(bitmap, bitmap.width, bitmap.height);
  showBusy(true);
  const answer = await api.count(file, signal);
  if (!bitmap) showPicture(null, answer.width, answer.height);
  bitmap?.close();
  addFrame(answer);
  await showFrame(0);
}

async function openAsVideo(file, signal) {
  const opened = await openVideo(file);
  if (signal.aborted) return opened.close();
  player = opened;
  state.duration = player.duration;
  find("timeline").hidden = false;
  setPaused(false);
  showChart();
  await countVideo(signal);
}

async function countVideo(signal) {
  const every = Math.max(Number(find("every").value), state.duration / MOST_FRAMES);
  for (let time = 0; time < state.duration || time === 0; time += every) {
    await running(signal);
    const { canvas, blob } = await grab(player.video, time);
    if (signal.aborted) return;
    if (state.chosen < 0) showPicture(canvas, canvas.width, canvas.height);
    const answer = await api.count(blob, signal);
    addFrame(answer, time);
    // Follow the newest frame, unless somebody looks at another.
    if (state.chosen >= state.frames.length - 2) await showFrame(state.frames.length - 1, canvas);
    else showChart();
    find("progress").textContent = `${state.frames.length} frames, ${clock(time)} of ${clock(state.duration)}`;
  }
  find("pause").hidden = true;
}

function addFrame(answer, time) {
  const density = unpack(answer.density, answer.width, answer.height);
  const frame = {
    time,
    answer,
    density,
    peak: answer.overlay.peak,
    square: answer.overlay.square,
  };
  applyMasks(frame);
  state.frames.push(frame);
  delete answer.density;
}

// What is shown

function showPicture(source, width, height) {
  const scale = Math.min(1, LARGEST_SHOWN / Math.max(width, height));
  const canvas = find("picture");
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  canvas.getContext("2d").imageSmoothingQuality = "high";
  if (source) canvas.getContext("2d").drawImage(source, 0, 0, canvas.width, canvas.height);
  const stage = find("stage");
  stage.style.aspectRatio = `${width} / ${height}`;
  stage.style.maxWidth = `calc(78vh * ${width / height})`;
  find("welcome").hidden = true;
  find("work").hidden = false;
  find("layer").hidden = true;
  find("count").textContent = "…";
  find("unit").textContent = "people";
  find("detail").textContent = state.name;
  find("interval").hidden = true;
  find("trust").hidden = true;
}

async function showFrame(index, canvas = null) {
  state.chosen = index;
  const frame = shown();
  if (isVideo()) {
    const source = canvas ?? (await grab(player.video, frame.time)).canvas;
    if (shown() !== frame) return; // another was chosen meanwhile
    showPicture(source, source.width, source.height);
  }
  const { answer } = frame;
  const layer = find("layer");
  layer.src = `data:image/png;base64,${answer.overlay.png}`;
  layer.hidden = false;
  showNumber();
  const parts = [frame.time === undefined ? state.name : `${state.name} at ${clock(frame.time)}`];
  const seconds = answer.milliseconds / 1000;
  parts.push(`${answer.width} × ${answer.height}`, seconds < 1 ? `${Math.round(answer.milliseconds)} ms` : `${seconds.toFixed(1)} s`);
  find("detail").textContent = parts.join(" · ");
  find("half").textContent = short(frame.peak / 4);
  find("peak").textContent = short(frame.peak);
  find("square").textContent = `people per ${frame.square} × ${frame.square} pixels`;
  showDots(frame);
  showWarnings(answer.warnings);
  showBusy(false);
  zones.refresh();
  if (isVideo()) showChart();
}

function showNumber() {
  const whole = Math.round(shown().count);
  find("count").textContent = whole.toLocaleString("en");
  find("unit").textContent = whole === 1 ? "person" : "people";
  const range = rangeText(intervalAround(shown().count, shown().answer.spread));
  find("interval").hidden = range === "";
  find("interval").textContent = `${range} in nine of ten cases`;
  find("picture").setAttribute("aria-label", `${state.name}: ${whole} people, with the density in colour over it`);
}

/** Draw a stroke of no length at each head, which a round pen makes a dot. */
function showDots({ points, answer: { width, height } }) {
  const dots = find("dots");
  dots.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const size = dotSize(points.length, width, height);
  const heads = points.map(([x, y]) => `M${x} ${y}h0`).join("");
  const paths = [["halo", 1.5 * size], ["", size]].map(([name, thickness]) => {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", heads);
    path.setAttribute("class", name);
    path.setAttribute("stroke-width", thickness);
    return path;
  });
  dots.replaceChildren(...paths);
}

function showWarnings(warnings) {
  find("trust").hidden = warnings.length === 0;
  find("trust").textContent = warnings.map(sentence).join(" ");
}

function showChart() {
  drawChart(find("chart"), { ...state, zones: zones.list });
}

function showOpacity() {
  const share = find("opacity").value / 100;
  find("layer").style.opacity = share;
  find("picture").style.filter = `grayscale(${0.75 * share})`; // so that its own colours are not taken for the overlay's
  find("opacity").setAttribute("aria-valuetext", `${find("opacity").value} % opaque`);
}

function showBusy(on) {
  find("busy").hidden = !on;
  find("stage").setAttribute("aria-busy", String(on));
}

function showError(error) {
  const box = find("error");
  box.hidden = error === null;
  if (error === null) return;
  showBusy(false);
  const next = document.createElement("span");
  next.textContent = error instanceof api.Problem ? sentence(error.nextStep) : "A fault of the page; please report it.";
  box.replaceChildren(error.message.replace(/^image: /, `${state.name}: `), next);
  box.scrollIntoView({ block: "nearest" });
  if (state.frames.length === 0) {
    find("work").hidden = true;
    find("welcome").hidden = false;
  }
}

const sentence = (words) => words && words[0].toUpperCase() + words.slice(1).replace(/\.?$/, ".");

// Pausing a video

let paused = false;
let resume = () => {};

function setPaused(on) {
  paused = on;
  find("pause").hidden = false;
  find("pause").textContent = on ? "Go on" : "Pause";
  if (!on) resume();
}

function running(signal) {
  if (!paused) return Promise.resolve();
  return new Promise((resolve) => {
    resume = resolve;
    signal.addEventListener("abort", resolve, { once: true });
  });
}

// Wiring

find("file").addEventListener("change", () => {
  const [file] = find("file").files;
  if (file) open(file);
  find("file").value = "";
});
document.querySelectorAll(".choose").forEach((button) => button.addEventListener("click", () => find("file").click()));
document.querySelectorAll("[data-sample]").forEach((button) => button.addEventListener("click", async () => {
  const name = `${button.dataset.sample}.jpg`;
  const blob = await (await fetch(`page/samples/${name}`)).blob();
  open(new File([blob], name, { type: "image/jpeg" }));
}));
document.addEventListener("paste", (event) => {
  const [file] = event.clipboardData.files;
  if (file) open(file);
});
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dragging");
});
document.addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) document.body.classList.remove("dragging");
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dragging");
  const [file] = event.dataTransfer.files;
  if (file) open(file);
});

find("opacity").addEventListener("input", showOpacity);
find("show-dots").addEventListener("change", () => find("dots").toggleAttribute("hidden", !find("show-dots").checked));
find("pause").addEventListener("click", () => setPaused(!paused));
find("chart").addEventListener("pointerdown", (event) => {
  if (state.frames.length) choose(frameAt(find("chart"), event, state.frames, state.duration));
});
find("chart").addEventListener("keydown", (event) => {
  const last = state.frames.length - 1;
  const target = { ArrowLeft: state.chosen - 1, ArrowRight: state.chosen + 1, Home: 0, End: last }[event.key];
  if (target === undefined || last < 0) return;
  event.preventDefault();
  choose(Math.min(Math.max(target, 0), last));
});
new ResizeObserver(() => isVideo() && showChart()).observe(find("chart"));

/** Show a frame that somebody asked for; counting pauses, since both need the one player. */
function choose(index) {
  if (!find("pause").hidden) setPaused(true);
  showFrame(index);
}

find("every").addEventListener("change", async () => {
  if (!isVideo()) return;
  job.abort();
  job = new AbortController();
  Object.assign(state, { frames: [], chosen: -1 });
  setPaused(false);
  const { signal } = job;
  await countVideo(signal).catch((error) => signal.aborted || showError(error));
});
find("save-zones").addEventListener("click", () => {
  const text = JSON.stringify(zones.toFile(), null, 1);
  download(new Blob([text], { type: "application/json" }), `${stem()}-zones.json`);
});
find("load-zones").addEventListener("click", () => find("zones-file").click());
find("zones-file").addEventListener("change", async () => {
  const [file] = find("zones-file").files;
  find("zones-file").value = "";
  if (!file || !shown()) return;
  try {
    zones.fromFile(JSON.parse(await file.text()), shown().answer.width, shown().answer.height);
    showError(null);
  } catch {
    showError(new api.Problem(`${file.name}: no zones that can be read.`, "Choose a file that this page has saved."));
  }
});
find("save-png").addEventListener("click", () => {
  if (!shown()) return;
  const opacity = find("opacity").value / 100;
  const bar = document.querySelector(".bar img");
  const canvas = compose({
    picture: find("picture"), layer: find("layer"), bar, opacity, shown: shown(), zones: zones.list,
    dots: find("show-dots").checked,
  });
  canvas.toBlob((blob) => download(blob, `${stem()}-count.png`), "image/png");
});
find("save-csv").addEventListener("click", () => {
  if (!shown()) return;
  const csv = table({ name: state.name, frames: state.frames, zones: zones.list });
  download(new Blob([csv], { type: "text/csv" }), `${stem()}-count.csv`);
});
const stem = () => state.name.replace(/\.[^.]*$/, "");

showOpacity();
api.model().then((model) => {
  state.limits = model.limits;
  find("model").textContent = `model ${model.name}, ${model.engine}`;
}, showError);
