"use strict";

const points = JSON.parse(document.getElementById("points").textContent);

function element(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}

function format(value) {
  return value.toLocaleString("en", { maximumFractionDigits: 1 });
}

function showDetail(point) {
  const detail = document.getElementById("detail");
  const image = detail.querySelector("img");
  detail.hidden = false;
  image.hidden = point.image === null;
  detail.querySelector(".empty").hidden = point.image !== null;
  if (point.image !== null) {
    image.src = point.image;
    image.alt = `Picture ${point.id} of ${point.data}`;
  }
  detail.querySelector("h3").textContent = point.id;
  const error = point.count - point.truth;
  const facts = {
    truth: format(point.truth),
    counted: format(point.count),
    "90 % interval": point.interval,
    error: (error < 0 ? "−" : "+") + format(Math.abs(error)),
    "data set": point.data,
    size: point.size,
    "nearest domain": point.domain,
    novelty: point.novelty,
  };
  const known = Object.entries(facts).filter(([, value]) => value !== null);
  detail.querySelector("dl").replaceChildren(
    ...known.map(([name, value]) => {
      const row = document.createElement("div");
      row.append(element("dt", name), element("dd", value));
      return row;
    }),
  );
}

function makeDotsSelectable(plot) {
  const all = [...plot.querySelectorAll(".dot")];
  const visible = () => all.filter((dot) => !dot.classList.contains("away"));
  let chosen = null;

  function choose(dot, focus) {
    // One stop for the tab key, the arrow keys do the rest.
    chosen?.classList.remove("selected");
    chosen?.setAttribute("tabindex", "-1");
    chosen = dot;
    dot.classList.add("selected");
    dot.setAttribute("tabindex", "0");
    if (focus) dot.focus();
    showDetail(points[Number(dot.dataset.row)]);
  }

  function chooseWorst() {
    const error = (dot) => Math.abs(points[dot.dataset.row].count - points[dot.dataset.row].truth);
    const dots = visible();
    if (dots.length) choose(dots.reduce((worst, dot) => (error(dot) > error(worst) ? dot : worst)), false);
  }

  plot.addEventListener("click", (event) => {
    const dot = event.target.closest(".dot");
    if (dot) choose(dot, true);
  });
  plot.addEventListener("keydown", (event) => {
    const dots = visible();
    const place = dots.indexOf(document.activeElement);
    const steps = { ArrowRight: place + 1, ArrowUp: place + 1, ArrowLeft: place - 1, ArrowDown: place - 1 };
    const jumps = { ...steps, Home: 0, End: dots.length - 1, Enter: place, " ": place };
    if (place < 0 || !(event.key in jumps)) return;
    event.preventDefault();
    choose(dots[Math.min(Math.max(jumps[event.key], 0), dots.length - 1)], true);
  });

  const buttons = [...document.querySelectorAll(".chips button")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const wanted = button.dataset.show;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      for (const dot of all) dot.classList.toggle("away", wanted !== "" && dot.dataset.set !== wanted);
      chooseWorst();
    });
  }
  chooseWorst();
}

function makeDepthMovable(slider) {
  const levels = [...document.querySelectorAll(".balls")];
  const output = document.querySelector("output[for=depth]");
  function show() {
    for (const level of levels) level.classList.toggle("shown", level.dataset.depth === slider.value);
    output.textContent = `${slider.value} deep, balls: ${levels[Number(slider.value)].dataset.balls}`;
  }
  slider.addEventListener("input", show);
  show();
}

const scatter = document.querySelector("[data-figure=agreement]");
if (scatter) makeDotsSelectable(scatter);
const depth = document.getElementById("depth");
if (depth) makeDepthMovable(depth);
