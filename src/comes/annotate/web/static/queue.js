// What goes to the server and comes from it, and what is kept here while there is no network.
// Answers on their way are kept in localStorage until the server has them, and sent in order.
// A queue belongs to a tab. What a tab leaves behind, the next page of the same person sends.

const QUEUE = "comes-queue-"; // and the tab: how a queue is called in localStorage
const OPEN = "comes-open-"; // and the tab: that a page is open, or was until the browser ended
const AT_ONCE = 200; // answers in a request
const FIRST_PAUSE = 1_000; // milliseconds, like all times here
const LONGEST_PAUSE = 15_000;
const PATIENCE = 20_000; // with one request
const ROLL_CALL = 250; // in which tabs say that they live

const channel = new BroadcastChannel("comes-tabs");
let ownTab = null;
channel.addEventListener("message", ({ data }) => {
  if (data.ask && ownTab) channel.postMessage({ lives: ownTab });
});

// A random id; crypto.randomUUID is missing on plain http.
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Send json, and return the status and the json that came back; status 0 where nothing came.
// With `keepalive`, what is on its way arrives even if the page is closed.
export async function post(address, body, keepalive = false) {
  const headers = { "Content-Type": "application/json" };
  return request(address, { method: "POST", headers, body: JSON.stringify(body), keepalive });
}

// Ask for json, and return the same.
export async function request(address, options = {}) {
  const headers = { ...options.headers, "X-Comes-Page": document.body.dataset.page ?? "" };
  let reply;
  try {
    reply = await fetch(address, { ...options, headers, signal: AbortSignal.timeout(PATIENCE) });
    return { status: reply.status, body: await reply.json() };
  } catch {
    return { status: reply && !reply.ok ? reply.status : 0, body: {} };
  }
}

// Send json while the page is being closed; nobody hears the reply.
export function sendLast(address, body) {
  navigator.sendBeacon(address, new Blob([JSON.stringify(body)], { type: "application/json" }));
}

// Whether a request may succeed when it is sent again.
export function isPassing(status) {
  return status === 0 || status === 408 || status === 429 || status >= 500;
}

// Whether nothing will succeed before the person does something: the token, or the origin.
export function isFinal(status) {
  return status === 401 || status === 403;
}

// Have the page open without a network, too, where the browser has service workers (sw.js). The first
// time, what was loaded before the worker was there is loaded again.
export async function keepForOffline() {
  const worker = navigator.serviceWorker;
  if (!worker) return;
  const isNew = !worker.controller;
  const isThere = new Promise((resolve) => worker.addEventListener("controllerchange", resolve, { once: true }));
  const isRegistered = await worker.register("/sw.js").then(() => true, () => false);
  if (!isNew || !isRegistered) return;
  await isThere;
  const loaded = performance.getEntriesByType("resource").map((entry) => new URL(entry.name).pathname);
  const kept = loaded.filter((path) => /^\/(static\/|items\/\d+$)/.test(path));
  for (const path of new Set([location.pathname, ...kept])) fetch(path).then((reply) => reply.blob()).catch(() => {});
}

// Forget what was kept to open without a network.
export async function forgetOffline() {
  await globalThis.caches?.delete("comes"); // which plain http has not
}

// Write json to a storage; where that is full, only the safety of a reload is lost.
export function save(storage, name, value) {
  try {
    storage.setItem(name, JSON.stringify(value));
  } catch {
    storage.removeItem(name);
  }
}

// Read json from a storage; null where there is none.
export function load(storage, name) {
  try {
    return JSON.parse(storage.getItem(name));
  } catch {
    return null;
  }
}

// Pauses between attempts, each twice as long as the one before; `online` ends one early.
export class Pauses {
  #next = FIRST_PAUSE;

  reset() {
    this.#next = FIRST_PAUSE;
  }

  wait() {
    const pause = this.#next;
    this.#next = Math.min(2 * pause, LONGEST_PAUSE);
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        removeEventListener("online", end);
        resolve();
      };
      const timer = setTimeout(end, pause);
      addEventListener("online", end);
    });
  }
}

// Return the tabs of other pages of this browser that are alive.
function callRoll() {
  const living = new Set();
  const note = ({ data }) => data.lives && living.add(data.lives);
  channel.addEventListener("message", note);
  channel.postMessage({ ask: true });
  return new Promise((resolve) => {
    setTimeout(() => {
      channel.removeEventListener("message", note);
      resolve(living);
    }, ROLL_CALL);
  });
}

// Return the id of this tab, the same after a reload, and the tabs of this person that ended here:
// `left` have answers that nobody sends, `ended` may hold cards.
// A duplicated tab comes with the id of the one that it was copied from, and takes a new one.
export async function findTab(owner) {
  const name = "comes-tab";
  const known = load(sessionStorage, name);
  const [withQueue, opened] = [QUEUE, OPEN].map((prefix) => tabsUnder(prefix, owner));
  const isAlone = !known && !withQueue.length && !opened.length;
  const living = isAlone ? new Set() : await callRoll();
  const isOurs = known?.owner === owner && !living.has(known.tab);
  ownTab = isOurs ? known.tab : randomId();
  save(sessionStorage, name, { tab: ownTab, owner });
  save(localStorage, OPEN + ownTab, { owner });
  const hasEnded = (tab) => tab !== ownTab && !living.has(tab);
  return { tab: ownTab, left: withQueue.filter(hasEnded), ended: opened.filter(hasEnded) };
}

// The server knows that a tab has ended.
export function forgetTab(tab) {
  localStorage.removeItem(OPEN + tab);
}

// Return the tabs of a person of which something is kept in this browser.
function tabsUnder(prefix, owner) {
  return Object.keys(localStorage)
    .filter((name) => name.startsWith(prefix) && load(localStorage, name)?.owner === owner)
    .map((name) => name.slice(prefix.length));
}

// The unsent answers of one tab. An entry is an answer {card, answer, key, seconds, hint}, or what is to
// be taken back {undo: keys}; `tried` is set once the server may have it.
export class AnswerQueue {
  isFailing = false; // the last attempt got no answer
  isStopped = false;
  #tab;
  #owner;
  #on;
  #entries;
  #isRunning = false;
  #atOnce = AT_ONCE;
  #pauses = new Pauses();

  // `on` has three functions: changed(), lost(entry, reply), and stopped(reply).
  constructor(tab, owner, on) {
    this.#tab = tab;
    this.#owner = owner;
    this.#on = on;
    this.#entries = load(localStorage, QUEUE + tab)?.entries ?? [];
  }

  get size() {
    return this.#entries.length;
  }

  // The cards whose answers wait.
  get cards() {
    return this.#entries.filter((entry) => entry.card).map((entry) => entry.card);
  }

  // Have answers sent.
  add(answers) {
    this.#set([...this.#entries, ...answers]);
    this.run();
  }

  // Take answers back: those that the server cannot have are forgotten, others are undone there.
  takeBack(keys) {
    const isNew = (entry) => keys.includes(entry.key) && !entry.tried;
    const forgotten = this.#entries.filter(isNew).map((entry) => entry.key);
    const undo = keys.filter((key) => !forgotten.includes(key));
    const rest = this.#entries.filter((entry) => !isNew(entry));
    const pieces = [];
    for (let i = 0; i < undo.length; i += AT_ONCE) pieces.push({ undo: undo.slice(i, i + AT_ONCE) });
    this.#set([...rest, ...pieces]);
    this.run();
  }

  // Send until nothing is left.
  async run() {
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (this.size && !this.isStopped) await this.#sendBatch();
    this.#isRunning = false;
    this.#atOnce = AT_ONCE;
    this.#on.changed();
  }

  async #sendBatch() {
    const batch = this.#nextBatch();
    for (const entry of batch) entry.tried = true;
    this.#set(this.#entries);
    const reply = await this.#send(batch);
    this.isFailing = isPassing(reply.status);
    if (this.isFailing) {
      this.#on.changed();
      await this.#pauses.wait();
      return;
    }
    this.#pauses.reset();
    if (reply.status === 200) this.#remove(batch);
    else if (isFinal(reply.status)) this.#stop(reply);
    else this.#giveUp(batch, reply);
    this.#on.changed();
  }

  #send(batch) {
    const [{ undo }] = batch;
    if (undo) return post("/api/undo", { tab: this.#tab, keys: undo }, true);
    const answers = batch.map(({ tried, ...answer }) => answer);
    return post("/api/answers", { tab: this.#tab, answers }, true);
  }

  // The answers up to the next undo, or that undo.
  #nextBatch() {
    const undo = this.#entries.findIndex((entry) => entry.undo);
    const end = undo < 0 ? this.size : Math.max(undo, 1);
    return this.#entries.slice(0, Math.min(end, this.#atOnce));
  }

  // Drop the answer that was refused; where the refusal does not say which, look for it one by one.
  #giveUp(batch, reply) {
    const named = batch.find((entry) => entry.card === reply.body.card);
    const refused = named ?? (batch.length === 1 ? batch[0] : null);
    if (!refused) {
      this.#atOnce = 1;
      return;
    }
    for (const entry of this.#entries) {
      if (entry.undo) entry.undo = entry.undo.filter((key) => key !== refused.key);
    }
    this.#remove([refused, ...this.#entries.filter((entry) => entry.undo?.length === 0)]);
    this.#on.lost(refused, reply);
  }

  #stop(reply) {
    this.isStopped = true;
    this.#on.stopped(reply);
  }

  #remove(entries) {
    this.#set(this.#entries.filter((entry) => !entries.includes(entry)));
  }

  #set(entries) {
    this.#entries = entries;
    if (this.size) save(localStorage, QUEUE + this.#tab, { owner: this.#owner, entries });
    else localStorage.removeItem(QUEUE + this.#tab);
  }
}
