// Pictures of the cards of a page: loaded before they are needed, a few at once, and kept as long as
// they may be shown. What is loaded needs no network any more.

import { Pauses, isFinal, isPassing } from "./queue.js";

const MOST_PICTURES = 80;
const MOST_BYTES = 96_000_000; // as they travel
const AT_ONCE = 3;
const RECENT = 6; // pictures that were shown last, for undo

export class Pictures {
  #known = new Map(); // item -> {image, outcome: promise of "shown" or "broken"}
  #sizes = new Map(); // item -> bytes
  #wanted = [];
  #recent = [];
  #nLoading = 0;
  #onRefused;

  // `onRefused(status)` is called when nothing will come before the person does something.
  constructor(onRefused) {
    this.#onRefused = onRefused;
    const note = (list) => list.getEntries().forEach((entry) => this.#noteSize(entry));
    new PerformanceObserver(note).observe({ type: "resource" });
  }

  // Return the picture of an item that is to be shown, loading it if that has not begun.
  take(item) {
    this.#recent = [...this.#recent.filter((one) => one !== item), item].slice(-RECENT);
    return this.#load(item);
  }

  // Load the pictures of items one after the other, and forget others.
  want(items) {
    this.#wanted = [...new Set(items)];
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
    const bytes = [...this.#known.keys()].reduce((sum, item) => sum + (this.#sizes.get(item) ?? 0), 0);
    const isFull = this.#known.size >= MOST_PICTURES || bytes >= MOST_BYTES;
    const next = this.#wanted.find((item) => !this.#known.has(item));
    if (next === undefined || isFull || this.#nLoading >= AT_ONCE) return;
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

  #noteSize(entry) {
    const found = /\/items\/(\d+)$/.exec(new URL(entry.name).pathname);
    if (found) this.#sizes.set(Number(found[1]), entry.encodedBodySize);
  }
}
