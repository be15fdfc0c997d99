// A picture that can be enlarged and moved: by wheel, double click, two fingers, buttons and keys.
// A long picture begins as wide as the stage, and is scrolled. Who looks closer than the display
// size allows gets the whole picture.

const LARGEST = 8;
const ENLARGED = 1.4; // from which on the display size is coarse
export const STEP = 1.5;
const DISPLAYED = 1600; // pixels; a picture that is narrower came whole
const KEY_STEP = 60; // pixels that an arrow key moves
const LONG = 2.2; // times as high as the stage, where the picture is as wide as it can be

const stage = document.getElementById("stage");
const tools = document.getElementById("zoom");
const held = new Map(); // pointer -> where it is

let image = null;
let place = { scale: 1, x: 0, y: 0 };
let lastPinch = null; // distance of two fingers

// Whether the picture is larger than it need be, so that dragging moves it.
export function isZoomed() {
  return image !== null && place.scale > 1;
}

// Have a picture zoomed.
export function startZoom(shown) {
  image = shown;
  const { width, height } = stage.getBoundingClientRect();
  const isLong = image.naturalHeight / image.naturalWidth > LONG * (height / width);
  stage.classList.toggle("long", isLong);
  tools.hidden = false;
  fit();
}

// There is no picture.
export function endZoom() {
  image = null;
  held.clear();
  stage?.classList.remove("long", "zoomed");
  if (tools) tools.hidden = true;
}

// Have the picture in its full size, since what travels at first is made for the screen.
async function loadFull(shown) {
  const address = `${shown.src.split("?")[0]}/full`;
  if (shown.dataset.full) return;
  shown.dataset.full = "asked";
  const full = new Image();
  full.src = address;
  const isThere = await full.decode().then(() => true, () => false);
  if (isThere && full.naturalWidth > shown.naturalWidth) shown.src = address;
}

// Show the whole picture.
export function fit() {
  place = { scale: 1, x: 0, y: 0 };
  apply();
}

// Enlarge by a factor around a point of the window; without a point, around the middle.
export function zoomBy(factor, clientX, clientY) {
  if (!image) return;
  const box = stage.getBoundingClientRect();
  const x = (clientX ?? box.x + box.width / 2) - box.x;
  const y = (clientY ?? box.y + box.height / 2) - box.y;
  const scale = Math.min(Math.max(place.scale * factor, 1), LARGEST);
  const ratio = scale / place.scale;
  place = { scale, x: x - (x - place.x) * ratio, y: y - (y - place.y) * ratio };
  apply();
  if (scale > ENLARGED) loadFull(image);
}

// Move the picture.
export function pan(dx, dy) {
  place = { ...place, x: place.x + dx, y: place.y + dy };
  apply();
}

// Keep the picture inside the stage, and draw it at its place.
function apply() {
  if (!image) return;
  const box = stage.getBoundingClientRect();
  const least = (size) => size * (1 - place.scale);
  place.x = Math.min(0, Math.max(least(box.width), place.x));
  place.y = Math.min(0, Math.max(least(box.height), place.y));
  image.style.transformOrigin = "0 0";
  image.style.transform = place.scale > 1 ? `translate(${place.x}px, ${place.y}px) scale(${place.scale})` : "";
  stage.classList.toggle("zoomed", place.scale > 1);
  sharpen();
}

// Load the whole picture when the display size would be blurred.
function sharpen() {
  const shown = image;
  const isWhole = shown.naturalWidth < DISPLAYED || "whole" in shown.dataset;
  if (isWhole || place.scale * shown.clientWidth * devicePixelRatio <= shown.naturalWidth) return;
  shown.dataset.whole = "";
  const whole = new Image();
  whole.src = `${new URL(shown.src).pathname}/full`;
  whole.decode().then(() => { shown.src = whole.src; }, () => {}); // else it stays as it is
}

// Move and leave what is enlarged by keys.
function pressKey(event) {
  if (!isZoomed() || document.querySelector("dialog[open]")) return;
  const [dx, dy] = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
  if (event.key === "Escape") fit();
  else if (dx || dy) pan(KEY_STEP * dx, KEY_STEP * dy);
  else return;
  event.preventDefault();
}

// Two fingers on the stage enlarge, one moves what is enlarged.
function movePointer(event) {
  const before = held.get(event.pointerId);
  if (!image || !before) return;
  held.set(event.pointerId, event);
  const [first, second] = [...held.values()];
  if (second) {
    const distance = Math.hypot(first.clientX - second.clientX, first.clientY - second.clientY);
    const middle = [(first.clientX + second.clientX) / 2, (first.clientY + second.clientY) / 2];
    if (lastPinch) zoomBy(distance / lastPinch, ...middle);
    lastPinch = distance;
  } else if (isZoomed()) {
    pan(event.clientX - before.clientX, event.clientY - before.clientY);
  }
}

// Let go of a pointer.
function endPointer(event) {
  held.delete(event.pointerId);
  lastPinch = null;
}

// How many fingers or buttons are down.
export function countHeld() {
  return held.size;
}

// Have the stage, its buttons and the window heard.
export function listenToZoom() {
  stage.addEventListener("wheel", (event) => {
    if (!image || (stage.classList.contains("long") && !event.ctrlKey && !isZoomed())) return;
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY / 400), event.clientX, event.clientY);
  }, { passive: false });
  stage.addEventListener("dblclick", (event) => {
    if (!image || event.target.closest("button")) return;
    if (isZoomed()) fit();
    else zoomBy(2.5, event.clientX, event.clientY);
  });
  stage.addEventListener("pointerdown", (event) => held.set(event.pointerId, event));
  stage.addEventListener("pointermove", movePointer);
  for (const name of ["pointerup", "pointercancel", "pointerleave"]) stage.addEventListener(name, endPointer);
  stage.addEventListener("dragstart", (event) => event.preventDefault());
  document.getElementById("whole").addEventListener("click", fit);
  addEventListener("resize", apply);
  addEventListener("keydown", pressKey);
}
