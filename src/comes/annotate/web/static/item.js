// Looking at an item. A picture is shown whole, and can be enlarged and moved; a text is scrolled. It
// is remembered what was on the screen. On a touch screen a swipe answers: left for no, right for
// yes, up or down for cannot tell. Pictures are loaded before they are needed.

import { Pauses, isFinal, isPassing } from "./queue.js";
import { find, isDialogOpen, make, page, setFlag, setState, showAim } from "./view.js";
import { word } from "./words.js";

const LARGEST = 8; // times the whole picture, or
const LARGEST_PIXEL = 3; // pixels of the screen for one of the picture
export const STEP = 1.5;
const DISPLAYED = 1600; // pixels; a picture that is shorter and narrower came in its full size
const KEY_STEP = 60; // pixels that an arrow key moves
const FAR = 80; // pixels from which a swipe answers
const SLACK = 12; // pixels before a touch is a swipe
const CELL = 16; // pixels; so finely it is noted what was on the screen
const COLUMNS = 4;
const RECENT = 6; // items that were shown last, for undo

const stage = find("stage");
const noted = new Map(); // card -> {size, unseen: cells that were not on the screen yet}, RECENT ones
const held = new Map(); // pointer -> where it is

let card = null; // whose item is on show
let image = null; // the item, where it is a picture
let place = { scale: 1, x: 0, y: 0 };
let swipe = null; // where a touch began that may become a swipe
let isPulled = false; // by a swipe
let lastPinch = null; // distance of two fingers
let isWatching = false;

// ---- what is on show

// Show the text of a card.
export function showText(next) {
  put(next, make("div", { className: "text", dir: "auto", textContent: next.text || word("text.none") }));
}

// Show the picture of a card, which has loaded.
export function showPicture(next, picture) {
  picture.alt = next.name;
  put(next, picture);
}

// Show an item, from its top. Of a text, what was on the screen for the card before counts.
function put(next, element) {
  const before = card?.item === next.item ? noted.get(card.card) : null;
  clear(element);
  card = next;
  if (before && !noted.has(card.card)) noted.set(card.card, before);
  image = element.tagName === "IMG" ? element : null;
  find("zoom").hidden = !image;
  apply();
  measure();
  look();
  watch();
  setState("shown");
}

// Say that a picture is broken.
export function showBroken() {
  clear(make("p", { className: "broken" }, word("broken")));
  setState("broken");
}

// Show a word where the item will be.
export function showWaiting(text) {
  if (page.dataset.state !== "loading") clear(make("p", { className: "waiting" }));
  find("item").firstElementChild.textContent = text;
  setState("loading");
}

// Show something that is no item.
export function clear(element) {
  card = image = swipe = null;
  place = { scale: 1, x: 0, y: 0 };
  release();
  stage.scrollTop = 0;
  stage.classList.remove("zoomed");
  find("zoom").hidden = find("below").hidden = true;
  find("item").replaceChildren(element);
}

// Note whether a finger that moves up or down scrolls, and whether there is more below.
function measure() {
  if (isPulled || isZoomed()) return;
  const root = document.documentElement;
  const scrolls = stage.scrollHeight > stage.clientHeight + 1 || root.scrollHeight > innerHeight + 1;
  stage.classList.toggle("scrolls", scrolls);
  find("below").hidden = card === null || !hasMore();
}

// Whether a part of the item is still below what is shown; an enlarged picture is moved instead.
export function hasMore() {
  return !isZoomed() && stage.scrollHeight - stage.clientHeight - stage.scrollTop > 8;
}

// Show the next part of the item; first what was not on the screen yet.
export function scrollOn() {
  const next = stage.scrollTop + 0.85 * stage.clientHeight;
  const [first] = isSeen() ? [] : noted.get(card.card).unseen;
  const top = CELL * Math.floor(first / COLUMNS) - CELL;
  stage.scrollTop = first === undefined ? next : Math.min(next, top);
  stage.scrollIntoView({ block: "nearest" });
}

// ---- what was on the screen

// Whether every part of the item was on the screen since it was shown.
export function isSeen() {
  return noted.get(card?.card)?.unseen.size === 0;
}

// The part of the window in which the item is seen: in the stage, in the window, and not under the
// guidelines, which lie over the item on a small screen.
function findView() {
  const { offsetLeft, offsetTop, width, height } = visualViewport;
  const box = stage.getBoundingClientRect();
  const left = Math.max(box.left, offsetLeft);
  const top = Math.max(box.top, offsetTop);
  let right = Math.min(box.right, offsetLeft + width);
  let bottom = Math.min(box.bottom, offsetTop + height);
  const guide = find("guide")?.getBoundingClientRect();
  const isOver = guide?.width && guide.left < right && guide.right > left && guide.top < bottom && guide.bottom > top;
  if (isOver && guide.left <= left) bottom = guide.top;
  else if (isOver) right = guide.left;
  return { left, top, right, bottom };
}

// Note which cells of the item are on the screen.
function look() {
  if (card === null || isSeen() || document.hidden || isDialogOpen() || isPulled || isZoomed()) return;
  const shown = image ? stage : find("item").firstElementChild;
  const box = shown.getBoundingClientRect();
  const size = `${Math.round(box.width)}x${Math.round(box.height)}`;
  const rows = Math.ceil(box.height / CELL);
  if (noted.get(card.card)?.size !== size) noted.set(card.card, { size, unseen: new Set(Array(rows * COLUMNS).keys()) });
  if (noted.size > RECENT) noted.delete(noted.keys().next().value);
  const view = findView();
  const isIn = (from, to, least, most) => from >= least - 2 && to <= most + 2; // pixels of a border
  const { unseen } = noted.get(card.card);
  for (const cell of unseen) {
    const [row, column] = [Math.floor(cell / COLUMNS), cell % COLUMNS];
    const [left, right] = [column, column + 1].map((k) => box.left + (k * box.width) / COLUMNS);
    const [top, bottom] = [row * CELL, Math.min((row + 1) * CELL, box.height)].map((y) => box.top + y);
    if (isIn(left, right, view.left, view.right) && isIn(top, bottom, view.top, view.bottom)) unseen.delete(cell);
  }
}

// Look at every frame until all of the item was on the screen.
function watch() {
  setFlag("seen", isSeen());
  if (isWatching || card === null || isSeen()) return;
  isWatching = true;
  requestAnimationFrame(() => {
    isWatching = false;
    look();
    watch();
  });
}

// ---- looking closer

// Whether the picture is enlarged, so that dragging moves it.
function isZoomed() {
  return image !== null && place.scale > 1;
}

// How many pixels of the screen one of the picture takes where all of it is shown.
function fitted() {
  return Math.min(stage.clientWidth / image.naturalWidth, stage.clientHeight / image.naturalHeight);
}

// Show the whole picture.
function fit() {
  place = { scale: 1, x: 0, y: 0 };
  apply();
}

// Enlarge by a factor around a point of the window; without a point, around the middle.
export function zoomBy(factor, clientX, clientY) {
  if (!image) return;
  const box = stage.getBoundingClientRect();
  const x = (clientX ?? box.x + box.width / 2) - box.x;
  const y = (clientY ?? box.y + box.height / 2) - box.y;
  const largest = Math.max(LARGEST, LARGEST_PIXEL / fitted());
  const scale = Math.min(Math.max(place.scale * factor, 1), largest);
  const ratio = scale / place.scale;
  place = { scale, x: x - (x - place.x) * ratio, y: y - (y - place.y) * ratio };
  apply();
}

// Enlarge at a point, so far that there is something to read; or show the whole picture again.
function toggleZoom({ clientX, clientY }) {
  if (!image) return;
  const wide = stage.clientWidth / (image.naturalWidth * fitted()); // as wide as the stage
  if (isZoomed()) fit();
  else zoomBy(Math.max(2.5, Math.min(wide, 1 / fitted())), clientX, clientY);
}

// Move the picture.
function pan(dx, dy) {
  place = { ...place, x: place.x + dx, y: place.y + dy };
  apply();
}

// Where a side of the picture begins, so that it fills the stage or is in the middle of it.
function keepInside(start, room, drawn) {
  const margin = ((room - drawn) / 2) * place.scale;
  if (drawn * place.scale <= room) return (room * (1 - place.scale)) / 2;
  return Math.min(-margin, Math.max(room * (1 - place.scale) + margin, start));
}

// Draw the picture at its place; in its full size, where what came is too coarse.
function apply() {
  if (!image) return;
  const scale = fitted();
  place.x = keepInside(place.x, stage.clientWidth, scale * image.naturalWidth);
  place.y = keepInside(place.y, stage.clientHeight, scale * image.naturalHeight);
  image.style.transform = isZoomed() ? `translate(${place.x}px, ${place.y}px) scale(${place.scale})` : "";
  stage.classList.toggle("zoomed", isZoomed());
  const isReduced = Math.max(image.naturalWidth, image.naturalHeight) >= DISPLAYED;
  if (isReduced && !image.dataset.full && place.scale * scale * devicePixelRatio > 1) loadFull(image);
}

// Load a picture in its full size, since what travels at first is made for the screen.
async function loadFull(shown) {
  shown.dataset.full = "asked";
  const full = new Image();
  full.src = `${new URL(shown.src).pathname}/full`;
  const isThere = await full.decode().then(() => true, () => false);
  if (isThere && full.naturalWidth > shown.naturalWidth) shown.src = full.src;
}

// Move and leave what is enlarged by keys.
function pressKey(event) {
  if (event.defaultPrevented || !isZoomed() || isDialogOpen()) return;
  const [dx, dy] = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
  if (event.key === "Escape") fit();
  else if (dx || dy) pan(KEY_STEP * dx, KEY_STEP * dy);
  else return;
  event.preventDefault();
}

// ---- fingers and the mouse

// The answer of a swipe; null where it is too short, or scrolls.
function answerOf({ clientX, clientY }) {
  const [dx, dy] = [clientX - swipe.x, clientY - swipe.y];
  if (Math.max(Math.abs(dx), Math.abs(dy)) < FAR) return null;
  if (Math.abs(dy) >= Math.abs(dx)) return swipe.scrolls ? null : "maybe";
  if (dx < 0) return "no";
  return page.dataset.yes === "0" ? "maybe" : "yes";
}

// Show where the item is pulled, and what letting it go would answer.
function pull(event) {
  const [dx, dy] = [event.clientX - swipe.x, event.clientY - swipe.y];
  if (!isPulled && Math.hypot(dx, dy) < SLACK) return;
  isPulled = true;
  const moved = swipe.scrolls ? `translate(${dx}px)` : `translate(${dx}px, ${dy}px) rotate(${dx / 40}deg)`;
  find("item").style.transform = moved;
  showAim(answerOf(event));
}

// Put the item back.
function release() {
  isPulled = false;
  find("item").style.transform = "";
  showAim(null);
}

// A finger or a button is down: whether it may swipe is known from now on.
function begin(event) {
  if (event.isPrimary) held.clear();
  held.set(event.pointerId, event);
  const isTouch = event.pointerType === "touch";
  if (page.dataset.state === "shown" && (image || isTouch)) stage.setPointerCapture(event.pointerId);
  const maySwipe = isTouch && held.size === 1 && page.dataset.state === "shown" && !isZoomed() && page.dataset.mode === "cards";
  release();
  measure();
  swipe = maySwipe ? { x: event.clientX, y: event.clientY, scrolls: stage.classList.contains("scrolls") } : null;
}

// Two fingers enlarge, one moves what is enlarged, or pulls the item.
function move(event) {
  const before = held.get(event.pointerId);
  if (!before) return;
  held.set(event.pointerId, event);
  const [first, second] = held.values();
  if (image && second) {
    const distance = Math.hypot(first.clientX - second.clientX, first.clientY - second.clientY);
    const middle = [(first.clientX + second.clientX) / 2, (first.clientY + second.clientY) / 2];
    if (lastPinch) zoomBy(distance / lastPinch, ...middle);
    lastPinch = distance;
  } else if (isZoomed()) {
    pan(event.clientX - before.clientX, event.clientY - before.clientY);
  } else if (swipe) {
    pull(event);
  }
}

// A finger or button is let go, or (cancelled) the browser scrolls with it.
function end(event, give) {
  if (!held.has(event.pointerId)) return;
  const said = swipe && event.type === "pointerup" ? answerOf(event) : null;
  held.delete(event.pointerId);
  lastPinch = swipe = null;
  release();
  if (said) give(said);
}

// Have the stage, its buttons and the window heard; `give` takes the answer of a swipe.
export function listenToItem(give) {
  stage.addEventListener("wheel", (event) => {
    if (!image) return;
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY / 400), event.clientX, event.clientY);
  }, { passive: false });
  stage.addEventListener("dblclick", toggleZoom);
  stage.addEventListener("pointerdown", begin);
  stage.addEventListener("pointermove", move);
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, (event) => end(event, give));
  stage.addEventListener("dragstart", (event) => event.preventDefault());
  stage.addEventListener("scroll", measure, { passive: true });
  find("whole").addEventListener("click", fit);
  addEventListener("keydown", pressKey);
  new ResizeObserver(() => {
    apply();
    measure();
  }).observe(stage);
}

// ---- pictures

const MOST_PICTURES = 80;
const AT_ONCE = 3;

// Pictures of the cards of a page: loaded a few at once, and kept as long as they may be shown. What
// is loaded needs no network any more.
export class Pictures {
  #known = new Map(); // item -> {image, outcome: promise of "shown" or "broken"}
  #wanted = [];
  #recent = [];
  #nLoading = 0;
  #onRefused;

  // `onRefused(status)` is called when nothing will come before the person does something.
  constructor(onRefused) {
    this.#onRefused = onRefused;
  }

  // Return the picture of an item that is to be shown, loading it if that has not begun.
  take(item) {
    this.#recent = [...this.#recent.filter((one) => one !== item), item].slice(-RECENT);
    return this.#load(item);
  }

  // Load the pictures of cards one after the other, and forget others.
  want(cards) {
    this.#wanted = [...new Set(cards.filter((card) => card.text === null).map((card) => card.item))];
    const kept = new Set([...this.#wanted, ...this.#recent]);
    for (const item of this.#known.keys()) if (!kept.has(item)) this.#known.delete(item);
    this.#loadNext();
  }

  #load(item) {
    if (!this.#known.has(item)) {
      const image = new Image();
      image.decoding = "sync";
      const outcome = this.#try(image, item);
      this.#known.set(item, { image, outcome });
      this.#nLoading += 1;
      outcome.then(() => {
        this.#nLoading -= 1;
        this.#loadNext();
      });
    }
    return this.#known.get(item);
  }

  #loadNext() {
    const next = this.#wanted.find((item) => !this.#known.has(item));
    if (next === undefined || this.#known.size >= MOST_PICTURES || this.#nLoading >= AT_ONCE) return;
    this.#load(next);
    this.#loadNext();
  }

  // Load a picture, again and again while it is the network that fails; return how it ended.
  async #try(image, item) {
    const between = new Pauses();
    do {
      const isLoaded = await new Promise((resolve) => {
        image.onload = () => resolve(true);
        image.onerror = () => resolve(false);
        image.src = `/items/${item}`;
      });
      if (isLoaded) return "shown";
      const status = await fetch(image.src).then((reply) => reply.status, () => 0);
      if (isFinal(status)) this.#onRefused(status);
      if (!isPassing(status)) return "broken";
      await between.wait();
    } while (this.#known.has(item));
    return "broken"; // nobody waits for it any more
  }
}
