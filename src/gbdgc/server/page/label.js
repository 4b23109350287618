// The labelling page: heads proposed by the model, put right by clicks, and saved with every change.

import * as api from "./api.js";
import { makeView } from "./view.js";

const RETRY_SECONDS = 2;
const FEWEST = 5; // labelled pictures that `gbdgc tune` wants
const PROPOSED = "Proposed by the model; nothing is saved yet.";
const UNAIDED = "The model has no proposals; nothing is saved yet.";
const UNSAVED = "Not saved yet: it is tried again every few seconds. Leave this page open.";

const find = (id) => document.getElementById(id);

let pictures = []; // each with its labels, what the model sees, and what can be undone
let current = null;
let order = [];
let attempt = 0; // to open a picture; those before the newest are over
let unopened = false; // whether the error on show is of a picture that could not be opened

/** The heads on show: those labelled, or else those proposed. */
const headsOf = (picture) => picture.labels?.points ?? picture.seen?.points ?? [];
const isProposed = (picture) => picture.labels?.points === null && picture.seen !== null;
const isReady = (picture) => Boolean(picture.labels && (picture.labels.points || picture.seen || picture.blind));

const view = makeView(find("view"), {
  add: (place) => edit([...headsOf(current), place]),
  remove: (index) => edit(headsOf(current).filter((_, other) => other !== index)),
  move: (index, place) => edit(headsOf(current).map((head, other) => (other === index ? place : head))),
  busy: () => !current || !isReady(current),
});

// Changing labels

/** Replace the labels of the picture on show; null takes them away. */
function edit(points) {
  if (!current || !isReady(current)) return;
  current.undo.push(current.labels.points);
  current.redo = [];
  replace(current, points);
}

function replace(picture, points) {
  picture.labels.points = points;
  picture.unsent = true;
  send(picture);
  show();
}

function step(from, to) {
  if (!current?.[from].length) return;
  current[to].push(current.labels.points);
  replace(current, current[from].pop());
}

/** Save a picture's labels as they are now, and again as long as they have changed or the service was away. */
async function send(picture) {
  if (picture.sending) return;
  picture.sending = true;
  while (picture.unsent) {
    picture.unsent = false;
    const { points, tag } = picture.labels;
    try {
      const saved = await api.saveHeads(picture.name, points, tag);
      picture.labels.tag = saved.tag;
      picture.heads = points?.length ?? null;
      picture.score = null;
      showError(null);
    } catch (error) {
      if (error.status === 409) {
        await takeOver(picture, error);
      } else {
        picture.unsent = true;
        showError(error);
        showStatus();
        await pause();
      }
    }
  }
  picture.sending = false;
  show();
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 1000 * RETRY_SECONDS));

/** Somebody else has changed the labels: theirs stand, and nothing of ours is mixed into them. */
async function takeOver(picture, error) {
  const mine = JSON.stringify(picture.labels.points);
  const theirs = await api.heads(picture.name).catch(() => null);
  if (theirs === null) {
    picture.unsent = true;
    return;
  }
  Object.assign(picture, { labels: theirs, heads: theirs.points?.length ?? null, undo: [], redo: [], unsent: false });
  // Our own change may have been saved, and only the word of it lost.
  if (mine !== JSON.stringify(theirs.points)) showError(new api.Problem(error.message, "The labels from there are shown now."));
}

// Choosing a picture

async function open(picture) {
  attempt += 1;
  const mine = attempt;
  current = picture;
  history.replaceState(null, "", `#${encodeURIComponent(picture.name)}`);
  view.open(null, picture.width, picture.height);
  show();
  try {
    const [blob, labels] = await Promise.all([api.image(picture.name), picture.unsent ? picture.labels : api.heads(picture.name)]);
    if (!picture.unsent && !picture.sending) picture.labels = labels;
    if (mine === attempt && unopened) showError(null);
    const bitmap = await createImageBitmap(blob);
    if (mine !== attempt) return bitmap.close();
    view.open(bitmap, picture.width, picture.height);
    show();
    await look(picture);
    if (mine !== attempt) return;
    show();
    const following = neighbour(1);
    if (following) look(following).catch(() => {}); // so that its heads are there when it is opened
  } catch (error) {
    const away = error.status === 0;
    picture.blind = !away; // it can be labelled without proposals
    if (mine !== attempt) return;
    showError(error);
    unopened = true;
    show();
    if (!away) return;
    await pause();
    if (mine === attempt) open(picture);
  }
}

/** Ask the model, once for each picture. */
async function look(picture) {
  picture.looking ??= api.seen(picture.name);
  try {
    picture.seen = await picture.looking;
    picture.score = picture.seen.score;
  } catch (error) {
    picture.looking = null;
    throw error;
  }
}

const neighbour = (by) => order[order.indexOf(current) + by];

function go(by) {
  const picture = neighbour(by);
  if (picture) open(picture);
}

function accept() {
  if (!current || !isReady(current)) return;
  if (isProposed(current)) edit(headsOf(current));
  go(1);
}

/** Sort the list; by how well labels fit, each labelled picture is looked at first. */
async function sort() {
  const by = find("order").value;
  const rank = {
    folder: () => 0,
    unlabelled: (picture) => (picture.heads === null ? 0 : 1),
    fit: (picture) => picture.score ?? Infinity,
  }[by];
  if (by === "fit") {
    const labelled = pictures.filter((picture) => picture.heads);
    for (const [number, picture] of labelled.entries()) {
      if (find("order").value !== by) return;
      find("progress").textContent = `Comparing labels: ${number + 1} of ${labelled.length}`;
      picture.looking = null; // the score is of the labels as they are now
      await look(picture).catch(showError);
    }
  }
  order = pictures.toSorted((one, other) => rank(one) - rank(other) || 0);
  listPictures();
  if (by !== "folder" && order.length) await open(order[0]);
  else show();
}

// Showing

function show() {
  if (!current) return;
  const heads = headsOf(current);
  find("count").textContent = isReady(current) ? heads.length.toLocaleString("en") : "…";
  find("unit").textContent = heads.length === 1 ? "head" : "heads";
  find("model-count").textContent = current.seen ? `The model counts ${current.seen.count.toFixed(1)}` : "";
  find("detail").textContent = `${current.name} · ${current.width} × ${current.height}`;
  find("busy").hidden = isReady(current);
  find("undo").disabled = !current.undo.length;
  find("redo").disabled = !current.redo.length;
  find("previous").disabled = !neighbour(-1);
  find("next").disabled = !neighbour(1);
  find("reset").disabled = current.labels?.points === null;
  find("accept").textContent = isProposed(current) ? "Looks right, next" : "Next picture";
  find("nobody").setAttribute("aria-pressed", String(current.labels?.points?.length === 0));
  view.show(heads, isProposed(current));
  showStatus();
  showProgress();
}

function showStatus() {
  const box = find("status");
  const waiting = pictures.some((picture) => picture.unsent);
  const { labels, sending } = current;
  const saved = labels?.points?.length === 0 ? "Nobody here. Saved." : "Saved.";
  const unsaved = current.seen ? PROPOSED : UNAIDED;
  box.textContent = waiting ? UNSAVED : !isReady(current) ? "" : sending ? "Saving…" : labels.points === null ? unsaved : saved;
  box.className = `trust ${waiting ? "unsaved" : sending || labels?.points === null ? "" : "saved"}`;
}

function showProgress() {
  const labelled = pictures.filter((picture) => picture.heads !== null).length;
  find("progress").textContent = `${labelled} of ${pictures.length} labelled`;
  find("advice").textContent = labelled < FEWEST
    ? `Label at least ${FEWEST} pictures, better twenty; then fit the model to them:`
    : "Enough to fit the model to this camera. More pictures make it better:";
  pictures.forEach((picture) => {
    const [, state] = picture.item.children;
    const score = picture.score ?? null;
    picture.item.setAttribute("aria-current", String(picture === current));
    state.textContent = picture.heads === null ? "–" : picture.heads.toLocaleString("en");
    state.title = score === null ? "" : `fit ${score.toFixed(2)}`;
    state.classList.toggle("bad", score !== null && score < 0);
  });
  const list = find("pictures"); // scrolled by itself: scrollIntoView would move the whole page under the pointer
  const { offsetTop, offsetHeight } = current.item;
  list.scrollTop = Math.min(Math.max(list.scrollTop, offsetTop + offsetHeight - list.clientHeight), offsetTop);
}

function listPictures() {
  find("pictures").replaceChildren(...order.map((picture) => {
    const item = document.createElement("li");
    item.append(picture.item);
    return item;
  }));
}

function entry(state) {
  const item = document.createElement("button");
  item.type = "button";
  item.append(document.createElement("span"), document.createElement("b"));
  item.firstChild.textContent = state.name;
  const picture = { ...state, item, labels: null, seen: null, looking: null, undo: [], redo: [] };
  item.addEventListener("click", () => open(picture));
  return picture;
}

function showError(error) {
  const box = find("error");
  box.hidden = error === null;
  unopened = false;
  if (error === null) return;
  if (!(error instanceof api.Problem)) console.error(error);
  const next = document.createElement("span");
  next.textContent = error.nextStep ?? "";
  box.replaceChildren(error.message, next);
}

// Wiring

find("accept").addEventListener("click", accept);
find("next").addEventListener("click", () => go(1));
find("previous").addEventListener("click", () => go(-1));
find("undo").addEventListener("click", () => step("undo", "redo"));
find("redo").addEventListener("click", () => step("redo", "undo"));
find("nobody").addEventListener("click", () => edit([]));
find("reset").addEventListener("click", () => edit(null));
find("zoom-in").addEventListener("click", () => view.zoom(1.5));
find("zoom-out").addEventListener("click", () => view.zoom(1 / 1.5));
find("zoom-fit").addEventListener("click", () => view.fit());
find("order").addEventListener("change", sort);

// A button that was clicked would keep the focus, and take the next Enter for itself; by keyboard it is meant to.
document.addEventListener("click", (event) => event.detail > 0 && event.target.closest("button")?.blur());

const KEYS = {
  ArrowRight: () => go(1), n: () => go(1), ArrowLeft: () => go(-1), p: () => go(-1), Enter: accept,
  u: () => step("undo", "redo"), "+": () => view.zoom(1.5), "-": () => view.zoom(1 / 1.5), 0: () => view.fit(),
};
document.addEventListener("keydown", (event) => {
  if (event.target.closest("select, input, dialog")) return;
  if (event.key === "Enter" && event.target.closest("button")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const control = event.ctrlKey || event.metaKey;
  if (control && (key === "y" || (key === "z" && event.shiftKey))) step("redo", "undo");
  else if (control && key === "z") step("undo", "redo");
  else if (!control && !event.altKey && KEYS[key]) KEYS[key]();
  else return;
  event.preventDefault();
});

window.addEventListener("beforeunload", (event) => {
  if (pictures.some((picture) => picture.unsent || picture.sending)) event.preventDefault();
});

/** Look again at what another window may have changed meanwhile. */
window.addEventListener("focus", async () => {
  if (!current?.labels || current.unsent || current.sending) return;
  const picture = current;
  try {
    const [folder, labels] = await Promise.all([api.folder(), api.heads(picture.name)]);
    folder.pictures.forEach(({ name, heads }) => {
      const same = pictures.find((each) => each.name === name);
      if (same && !same.unsent && !same.sending) same.heads = heads;
    });
    if (!picture.unsent && !picture.sending && labels.tag !== picture.labels.tag) {
      Object.assign(picture, { labels, undo: [], redo: [] });
    }
    show();
  } catch (error) {
    showError(error);
  }
});

api.folder().then((folder) => {
  find("about").textContent = `${folder.folder} · model ${folder.model}`;
  find("command").textContent = folder.next_step;
  find("file").textContent = folder.file;
  pictures = folder.pictures.map(entry);
  order = [...pictures];
  listPictures();
  const wanted = decodeURIComponent(location.hash.slice(1));
  const first = pictures.find(({ name }) => name === wanted) ?? pictures.find(({ heads }) => heads === null) ?? pictures[0];
  return open(first);
}).catch(showError);
