// Frames of a video, grabbed in the browser: only still pictures go to the service.

import { Problem } from "./api.js";

const ENDLESS = 1e7; // a recording that does not know its length tells it when asked for a place beyond

/** Open a video file; the result has a `duration`, and must be closed. */
export async function openVideo(file) {
  const video = document.createElement("video");
  Object.assign(video, { muted: true, playsInline: true, preload: "auto", src: URL.createObjectURL(file) });
  const close = () => {
    URL.revokeObjectURL(video.src);
    video.removeAttribute("src");
    video.load();
  };
  try {
    await once(video, "loadeddata");
    if (!Number.isFinite(video.duration)) await seek(video, ENDLESS);
    return { video, duration: video.duration, close };
  } catch {
    close();
    throw new Problem(
      `${file.name}: this browser cannot play it.`,
      "Convert it to MP4 (H.264) or WebM, or count it on the command line: gbdgc count VIDEO",
    );
  }
}

/** Go to a time and return the frame there as a JPEG and as a canvas. */
export async function grab(video, time) {
  await seek(video, time);
  const canvas = document.createElement("canvas");
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d").drawImage(video, 0, 0);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.95));
  return { canvas, blob };
}

async function seek(video, time) {
  if (video.currentTime === time) return;
  const done = once(video, "seeked");
  video.currentTime = time;
  await done;
}

function once(video, name) {
  return new Promise((resolve, reject) => {
    const stop = new AbortController();
    const settle = (outcome) => () => {
      stop.abort();
      outcome();
    };
    video.addEventListener(name, settle(resolve), { signal: stop.signal });
    video.addEventListener("error", settle(reject), { signal: stop.signal });
  });
}
