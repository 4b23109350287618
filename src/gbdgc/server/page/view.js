// A picture with dots on it that can be zoomed, moved and clicked, by mouse, pen or fingers.

const MOST_ZOOM = 16; // pixels on screen for one of the picture
const CLICK = { mouse: 4, touch: 10 }; // a press that moves less is a click
const REACH = { mouse: 9, touch: 18 }; // how near to a head a press must be to mean it
const WHEEL = 0.0015;

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** Draw on a canvas; `add(place)`, `remove(index)` and `move(index, place)` are called for clicks and drags. */
export function makeView(canvas, { add, remove, move, busy }) {
  const context = canvas.getContext("2d");
  let picture = { bitmap: null, width: 1, height: 1 };
  let heads = [];
  let proposed = false;
  let scale = 1; // pixels on screen for one of the picture
  let left = 0; // where the picture's corner is on screen
  let top = 0;
  let fitted = true;
  const pointers = new Map();
  let press = null; // what the pointer that went down may become: a click, a drag of a head or of the picture

  const toPicture = ([x, y]) => [(x - left) / scale, (y - top) / scale];
  const least = () => Math.min(canvas.clientWidth / picture.width, canvas.clientHeight / picture.height);

  function settle() {
    scale = clamp(scale, least(), Math.max(MOST_ZOOM, least()));
    const free = [canvas.clientWidth - picture.width * scale, canvas.clientHeight - picture.height * scale];
    left = free[0] > 0 ? free[0] / 2 : clamp(left, free[0], 0);
    top = free[1] > 0 ? free[1] / 2 : clamp(top, free[1], 0);
    fitted = scale <= least() * 1.001;
    draw();
  }

  function zoomAt([x, y], factor) {
    const [px, py] = toPicture([x, y]);
    scale = clamp(scale * factor, least(), Math.max(MOST_ZOOM, least()));
    left = x - px * scale;
    top = y - py * scale;
    settle();
  }

  function fit() {
    scale = least();
    settle();
  }

  let waiting = false;
  function draw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      paint();
    });
  }

  function paint() {
    const ratio = window.devicePixelRatio || 1;
    const size = [canvas.clientWidth * ratio, canvas.clientHeight * ratio].map(Math.round);
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    if (picture.bitmap) {
      context.imageSmoothingEnabled = scale < 4;
      context.imageSmoothingQuality = "high";
      context.drawImage(picture.bitmap, left, top, picture.width * scale, picture.height * scale);
    }
    const spacing = scale * Math.sqrt((picture.width * picture.height) / Math.max(heads.length, 1));
    const radius = clamp(spacing / 7, 2.5, 6);
    const circles = new Path2D();
    heads.forEach((head, index) => {
      const [x, y] = press?.head === index && press.place ? press.place : head;
      const [sx, sy] = [left + x * scale, top + y * scale];
      circles.moveTo(sx + radius, sy);
      circles.arc(sx, sy, radius, 0, 2 * Math.PI);
    });
    // Rings, so that the head can be seen that a dot would hide.
    for (const [colour, thickness] of [["rgb(0 0 0 / 75%)", 4.5], [proposed ? "#ffd60a" : "#40ffd6", 2.2]]) {
      context.strokeStyle = colour;
      context.lineWidth = thickness;
      context.stroke(circles);
    }
  }

  // Pointers

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const kind = (event) => (event.pointerType === "mouse" ? "mouse" : "touch");

  function nearest(place, reach) {
    let best = -1;
    let shortest = reach;
    heads.forEach(([x, y], index) => {
      const distance = Math.hypot(left + x * scale - place[0], top + y * scale - place[1]);
      if (distance <= shortest) [best, shortest] = [index, distance];
    });
    return best;
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button > 1) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, at(event));
    // A second finger makes it a pinch, whatever the first began.
    const head = event.button === 1 || busy() ? -1 : nearest(at(event), REACH[kind(event)]);
    press = pointers.size > 1 ? { pinch: true } : { from: at(event), head, moved: event.button === 1, place: null };
  });

  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before || !press) return;
    const here = at(event);
    if (press.pinch) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      pointers.set(event.pointerId, here);
      if (!other) return;
      left += (here[0] - before[0]) / 2;
      top += (here[1] - before[1]) / 2;
      const distance = (one) => Math.max(Math.hypot(one[0] - other[0], one[1] - other[1]), 1);
      zoomAt([(here[0] + other[0]) / 2, (here[1] + other[1]) / 2], distance(here) / distance(before));
      return;
    }
    pointers.set(event.pointerId, here);
    press.moved ||= Math.hypot(here[0] - press.from[0], here[1] - press.from[1]) > CLICK[kind(event)];
    if (!press.moved) return;
    if (press.head >= 0) {
      press.place = inside(toPicture(here));
      draw();
    } else {
      left += here[0] - before[0];
      top += here[1] - before[1];
      settle();
    }
  });

  const inside = ([x, y]) => [clamp(x, 0, picture.width), clamp(y, 0, picture.height)].map((value) => +value.toFixed(1));

  function lift(event) {
    if (!pointers.delete(event.pointerId)) return;
    const ended = press;
    if (pointers.size === 0) press = null;
    if (!ended || ended.pinch || event.type === "pointercancel" || busy()) return draw();
    const [x, y] = toPicture(at(event));
    if (ended.place) move(ended.head, ended.place);
    else if (!ended.moved && ended.head >= 0) remove(ended.head);
    else if (!ended.moved && x >= 0 && y >= 0 && x <= picture.width && y <= picture.height) add(inside([x, y]));
  }
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 30 : 1; // some browsers count lines
    zoomAt(at(event), Math.exp(-WHEEL * lines * event.deltaY));
  }, { passive: false });
  new ResizeObserver(() => (fitted ? fit() : settle())).observe(canvas);

  return {
    fit,
    zoom: (factor) => zoomAt([canvas.clientWidth / 2, canvas.clientHeight / 2], factor),
    /** Show another picture, or nothing yet, at the size that it will have. */
    open(bitmap, width, height) {
      const another = picture.width !== width || picture.height !== height || !bitmap;
      if (picture.bitmap !== bitmap) picture.bitmap?.close();
      picture = { bitmap, width, height };
      const stage = canvas.parentElement;
      stage.style.aspectRatio = `${width} / ${height}`;
      stage.style.maxWidth = `calc(78vh * ${width / height})`;
      if (another) {
        press = null;
        heads = [];
        fit();
      } else draw();
    },
    show(points, areProposed) {
      heads = points;
      proposed = areProposed;
      draw();
    },
  };
}
