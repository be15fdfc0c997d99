// The pages on which people answer: cards of one class, or a grid of the classes of one item.
// An answer shows the next card at once; it is sent in the background (queue.js).

import {
  AnswerQueue, Pauses, findTab, forgetOffline, forgetTab, isFinal, keepForOffline, load, post,
  randomId, request, save, sendLast,
} from "./queue.js";
import * as grid from "./grid.js";
import {
  actionOf, classOf, introduceOnce, keyOf, listenToHelp, openHelp, openNote, showGuidelines, toggleGuidelines,
} from "./help.js";
import * as item from "./item.js";
import * as view from "./view.js";
import { find, isDialogOpen, isGrid, page } from "./view.js";
import { word } from "./words.js";

const DEEPEST_UNDO = 100;
const LONGEST_HISTORY = 1_000_000; // characters, since texts are kept with it
const FEW_CARDS = 10; // when so many are open, or
const FEW_ITEMS = 2; // in the grid so many, further ones are asked for
const MOST_HAD = 3000; // cards that a request may name
const PACE_OVER = 20; // answers
const LONGEST_LOOK = 3600; // seconds; what is longer was a break
const GUARD = 500; // milliseconds after a change of class in which nothing is answered
const KEPT = "comes-cards"; // of this tab, for a reload without a network

const queues = []; // that of this tab first, then what other tabs left
const pictures = new item.Pictures((status) => stop({ status, body: {} }));
const pauses = new Pauses();
const clock = { spent: 0, since: null }; // milliseconds; null while nobody sees the item
const previous = new Map(); // card -> its answer before it was taken back
const takenBack = new Set(); // keys of answers

let tab;
let block = []; // open cards; the first, and in the grid those of its item, are shown
let history = []; // lists of {card, answer, key, seconds} that were given together
let progress = { total: 0, done: 0, mine: 0 };
let nSince = 0; // answers given since the server counted
let nActions = 0; // answers and undos: cards that were asked for before one are outdated
let touched = new Set(); // cards that were answered or taken back since cards were asked for
let displayed = ""; // the numbers of the cards on show
let shownSince = 0; // when they were put there
let lastClass = null;
let isChanging = false; // another class is asked about than before, and nothing is answered yet
let isStale = false; // the server knows better which cards are ours
let isFetching = false;
let isLast = false; // there is no card beyond those of the block
let isFinished = false; // the server has no card for us
let cannotFetch = false;
let isLookingBack = false;

// ---- what is on show

// The cards that are asked about now.
function shownCards() {
  return block.filter((card, i) => (isGrid ? card.item === block[0].item : i === 0));
}

// Show the first cards of the block, unless they are on show.
function show() {
  const cards = shownCards();
  const numbers = cards.map((card) => card.card).join();
  if (numbers === displayed) return;
  displayed = numbers;
  shownSince = performance.now();
  view.endNotice();
  find("item-name").textContent = cards[0].name;
  if (isGrid) askAboutItem(cards);
  else askAboutCard(cards[0]);
  showItem(cards[0]);
  pictures.want(block);
  if (document.activeElement === document.body) view.focusStage();
}

// Ask about the class of one card.
function askAboutCard(card) {
  const isChange = lastClass !== null && lastClass !== card.class;
  const before = previous.get(card.card);
  lastClass = card.class;
  const question = view.showQuestion(card, before);
  isChanging = isChange;
  if (isChange) view.showChange(word("change", { class: card.class }));
  else view.setFlag("guarded", false);
  showGuidelines(card);
  const said = before ? word("said", { answer: word(`answer.${before}`) }) : "";
  view.announce(question, card.description, find("guess").textContent, `${card.name}.`, said);
}

// Ask about all classes of an item.
function askAboutItem(cards) {
  grid.showClasses(cards, mayAnswer);
  view.announce(`${cards[0].name}.`, word("grid.classes", { n: cards.length }));
}

// The item is there: count the time, and after a change of class wait before answers are taken.
function begin() {
  startClock();
  if (!isChanging) return;
  const numbers = displayed;
  setTimeout(() => {
    if (numbers !== displayed) return;
    isChanging = false;
    view.setFlag("guarded", false);
  }, GUARD);
}

// Show the text or the picture of a card; the clock starts when it is there.
async function showItem(card) {
  const numbers = displayed;
  stopClock();
  if (card.text !== null) {
    item.showText(card);
    await openForAnswers(numbers);
    return;
  }
  item.showWaiting(word("loading"));
  const { image, outcome } = pictures.take(card.item);
  const isBroken = (await outcome) === "broken";
  if (numbers !== displayed || isStopped()) return;
  if (isBroken) {
    item.showBroken();
    view.announce(`${card.name}:`, word("broken"));
    begin();
  } else {
    item.showPicture(card, image);
    await openForAnswers(numbers);
  }
}

// Take answers as soon as the item is on the screen: nobody answers what was not on show when the key
// was pressed. The buttons stay as they are for these two frames.
async function openForAnswers(numbers) {
  page.dataset.state = "appearing";
  for (let k = 0; k < 2; k += 1) await new Promise(requestAnimationFrame);
  if (numbers !== displayed || page.dataset.state !== "appearing") return;
  page.dataset.state = "shown";
  begin();
}

// The counts of the server with what was answered since.
function countNow() {
  const { total, done, mine, left = total - done, seconds = 0 } = progress;
  const since = nSince > 0 ? history.flat().slice(-nSince) : [];
  return {
    total,
    done: Math.min(Math.max(done + nSince, 0), total),
    mine: Math.max(mine + nSince, 0),
    left: Math.max(left - nSince, 0),
    seconds: since.reduce((sum, given) => sum + given.seconds, seconds),
  };
}

// Show how far everybody is, and the pace of the last answers.
function showProgress() {
  const counts = countNow();
  const last = history.flat().slice(-PACE_OVER);
  const seconds = last.reduce((sum, given) => sum + given.seconds, 0);
  const isKnown = !isFinished && last.length > 2 && seconds > 0;
  view.showProgress(counts, isKnown ? (60 * last.length) / seconds : 0, history.length > 0 || counts.mine > 0);
}

// The cards whose answers the server does not have, as many as a request may name.
function unsentCards() {
  return queues.flatMap((queue) => queue.cards).slice(-MOST_HAD);
}

// How many answers the server does not have.
function countUnsent() {
  return queues.reduce((sum, queue) => sum + queue.size, 0);
}

// Whether nothing goes on before the person does something.
function isStopped() {
  return page.dataset.state === "stopped";
}

// Stop, since the server refuses whatever is sent; nothing but the answers is kept.
function stop(reply) {
  stopClock();
  sessionStorage.removeItem(KEPT);
  forgetOffline();
  view.showStop(reply, countUnsent());
}

// ---- time

// Count from now on, unless the page is hidden.
function startClock() {
  clock.spent = 0;
  clock.since = document.hidden ? null : performance.now();
}

// Count no more; return the seconds that were counted.
function stopClock() {
  if (clock.since !== null) clock.spent += performance.now() - clock.since;
  clock.since = null;
  return clock.spent / 1000;
}

// Do not count the time in which nobody can see the page.
function watchVisibility() {
  const isThere = ["appearing", "shown", "broken"].includes(page.dataset.state);
  if (document.hidden) {
    stopClock();
    keepCards();
  } else if (isThere && clock.since === null) {
    clock.since = performance.now();
  }
}

// ---- answers

// Give answers to cards, each [card, answer], and go on.
function give(choices) {
  const looked = Math.min(stopClock(), LONGEST_LOOK);
  const seconds = Number((looked / choices.length).toFixed(3));
  const given = choices.map(([card, answer]) => ({ card, answer, key: randomId(), seconds, hint: card.hint ?? null }));
  clock.spent = 0;
  for (const { card } of given) {
    previous.delete(card.card);
    touched.add(card.card);
  }
  view.showTrace(given.map(({ answer }) => answer));
  block = block.filter((card) => !given.some((one) => one.card.card === card.card));
  history.push(given);
  saveHistory();
  nSince += given.length;
  nActions += 1;
  showProgress();
  queues[0].add(given.map((one) => ({ ...one, card: one.card.card })));
  goOn();
}

// Whether an answer may be given now; if not, say why.
function mayAnswer() {
  const { kind, state } = page.dataset;
  if (state === "loading") view.say(word("hint.loading"));
  if (state === "broken") view.say(word("hint.broken"));
  if (state !== "shown") return false;
  if (isChanging) view.say(word("hint.guard"));
  else if (!item.isSeen()) view.say(word(`hint.unseen.${kind}`));
  else return true;
  return false;
}

// Answer the card on show, or in the grid the class that the keys are for.
function answer(said) {
  if (said === "yes" && page.dataset.yes === "0") view.say(word("hint.no_yes"));
  else if (!mayAnswer()) return;
  else if (isGrid) grid.answerHere(said);
  else give([[block[0], said]]);
}

// Answer all classes of the item on show, once each has an answer.
function answerGrid() {
  const given = isGrid && mayAnswer() ? grid.complete() : null;
  if (given) give(given);
}

// Give all classes of the grid that were seen the same answer, where they have none.
function answerRest(said) {
  if (isGrid && mayAnswer()) grid.answerRest(said);
}

// Write a note about the card on show, or in the grid about the class that the keys are for.
function note() {
  if (block.length && ["shown", "broken"].includes(page.dataset.state)) openNote(isGrid ? grid.current() : block[0], tab);
}

// Leave what is on show unanswered; a picture that takes long need not be seen for that.
function skip() {
  const { state } = page.dataset;
  const isSlow = state === "loading" && performance.now() - shownSince > GUARD;
  if (!block.length || !(isSlow || ["shown", "broken"].includes(state))) return;
  if (isChanging && !isSlow) view.say(word("hint.guard"));
  else give(isGrid ? grid.take("skip") : [[block[0], "skip"]]);
}

// Take back what was answered last, here or elsewhere, and show it again.
async function undo() {
  if (isStopped() || isLookingBack) return;
  if (!history.length && !(await loadHistory())) return;
  const last = history.pop();
  if (!last) {
    view.say(word("hint.nothing"));
    return;
  }
  saveHistory();
  for (const { card, answer, key } of last) {
    previous.set(card.card, answer);
    if (isGrid) grid.restore(card, answer);
    takenBack.add(key);
    touched.add(card.card);
  }
  const numbers = last.map((given) => given.card.card);
  block = [...last.map((given) => given.card), ...block.filter((card) => !numbers.includes(card.card))];
  nSince -= last.length;
  nActions += 1;
  isFinished = false;
  queues[0].takeBack(last.map((given) => given.key));
  showProgress();
  goOn();
}

// Ask the server what this person answered before this page was opened; return whether it said so
// before anything else was done.
async function loadHistory() {
  const nBefore = nActions;
  isLookingBack = true;
  const reply = await request("/api/history");
  isLookingBack = false;
  if (isStopped() || nBefore !== nActions) return false;
  if (reply.status !== 200) {
    view.say(view.refusal(reply));
    return false;
  }
  const groups = new Map(); // in the grid, answers that were given together are taken back together
  for (const { at, ...given } of reply.body.history) {
    if (takenBack.has(given.key)) continue;
    const together = isGrid ? `${at} ${given.card.item}` : given.key;
    groups.set(together, [...(groups.get(together) ?? []), given]);
  }
  history = [...groups.values()];
  return true;
}

// Keep what can be undone for after a reload.
function saveHistory() {
  const isTooLong = () => history.length > DEEPEST_UNDO || JSON.stringify(history).length > LONGEST_HISTORY;
  while (history.length && isTooLong()) history.shift();
  save(sessionStorage, `comes-history-${tab}`, history);
}

// An answer was refused for good: say so, and ask the server which cards are still ours.
function lose(entry, { status, body }) {
  isStale = true;
  if (entry.undo) {
    view.say(word("lost.undo", { reason: body.error ?? status }), true);
    return;
  }
  history = history.map((list) => list.filter((given) => given.key !== entry.key)).filter((list) => list.length);
  saveHistory();
  if (status === 409 || status === 404) view.sayLate();
  else view.say(word("lost.answer", { reason: body.error ?? status }), true);
}

// ---- cards

// Whether the server should be asked for cards: when few are left, so that nobody waits, and one card sooner
// when it has all answers, since what it counts is right then. Where there are none, it is asked again when
// it has all answers, since only then it knows whether that is the end.
function needsCards() {
  if (isStale) return true;
  if (!block.length) return !(isLast && countUnsent());
  const [open, few] = isGrid ? [new Set(block.map((card) => card.item)).size, FEW_ITEMS] : [block.length, FEW_CARDS];
  return !isLast && open <= (countUnsent() ? few : few + 1);
}

// Show the next card, and fetch further ones in time.
function goOn() {
  const isDown = cannotFetch || queues.some((queue) => queue.size && queue.isFailing);
  view.showNetwork(block.length, countUnsent(), isDown);
  if (isStopped() || isFinished) return;
  if (block.length) {
    show();
  } else {
    displayed = "";
    item.showWaiting(word(isLast && countUnsent() ? "sending" : "loading"));
  }
  if (needsCards() && !isFetching) fetchCards();
}

// Ask the server for cards of this tab that the page lacks; or, when it knows better, for all.
async function fetchCards() {
  const [nBefore, wasStale, isQuiet] = [nActions, isStale, !countUnsent()];
  const has = [...unsentCards(), ...(wasStale ? [] : block.map((card) => card.card))];
  touched = new Set();
  isFetching = true;
  const reply = await post("/api/cards", { tab, mode: page.dataset.mode, has: has.slice(-MOST_HAD) });
  if (isFinal(reply.status)) {
    stop(reply);
    return;
  }
  cannotFetch = reply.status !== 200;
  if (cannotFetch) {
    if (!block.length && !nActions) await takeKept();
    goOn();
    await pauses.wait();
  } else {
    pauses.reset();
    const isCurrent = nBefore === nActions;
    if (!wasStale || isCurrent) takeCards(reply.body, wasStale);
    isFinished = !block.length && isQuiet && isCurrent;
    if (isQuiet && isCurrent) takeProgress(reply.body.progress);
    if (isFinished) finish(reply.body);
  }
  isFetching = false;
  goOn();
}

// Go on with the cards that came, those on show first.
function takeCards({ cards }, isAll) {
  const isKnown = (card) => touched.has(card.card) || block.some((one) => one.card === card.card);
  const shown = shownCards().map((card) => card.card);
  const front = cards.filter((card) => shown.includes(card.card));
  if (isAll) block = [...front, ...cards.filter((card) => !front.includes(card))];
  else block = [...block, ...cards.filter((card) => !isKnown(card))];
  isLast = !cards.length;
  if (isAll) isStale = false; // else an answer may have been refused meanwhile
  pictures.want(block);
}

// Go on with the cards that this tab had when it was reloaded without a network, as far as they are
// in this browser; the server is asked whether they are still ours.
async function takeKept() {
  const kept = load(sessionStorage, KEPT);
  if (kept?.tab !== tab) return;
  const waiting = unsentCards();
  const isHere = await Promise.all(
    kept.cards.map(async ({ text, item }) => text !== null || (await globalThis.caches?.match(`/items/${item}`))),
  );
  block = kept.cards.filter((card, k) => isHere[k] && !waiting.includes(card.card));
  progress = kept.progress;
  isStale = true;
  showProgress();
}

// Keep the open cards for a reload without a network.
function keepCards() {
  if (block.length && !isStopped()) save(sessionStorage, KEPT, { tab, cards: block, progress: countNow() });
}

// There is no card for this person: say so, and what is open with others.
function finish({ waiting, frozen }) {
  displayed = "";
  sessionStorage.removeItem(KEPT);
  item.clear(view.showFinished(countNow(), waiting, frozen, lookAgain));
}

// Take over what the server counted.
function takeProgress(counted) {
  progress = counted;
  nSince = 0;
  showProgress();
}

// Ask once more after everything was answered.
function lookAgain() {
  isFinished = isLast = false;
  view.focusStage();
  goOn();
}

// ---- keys, and the start

const ACTIONS = {
  no: () => answer("no"),
  maybe: () => answer("maybe"),
  yes: () => answer("yes"),
  done: answerGrid,
  "rest-no": () => answerRest("no"),
  "rest-maybe": () => answerRest("maybe"),
  skip,
  undo,
  note,
  guidelines: toggleGuidelines,
  help: openHelp,
  larger: () => item.zoomBy(item.STEP),
  smaller: () => item.zoomBy(1 / item.STEP),
};

// Whether a key scrolls a long item on instead of answering.
function scrolls(key) {
  return key === " " && page.dataset.state === "shown" && (item.hasMore() || !item.isSeen());
}

// Do what a key stands for, once; a focused button or link keeps its own Space and Enter.
function pressKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || isDialogOpen()) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const key = keyOf(event);
  if (key === " " && event.target.closest("#guide-text")) return;
  const isItsOwn = (key === " " || key === "enter") && event.target.closest("button, a");
  const by = { arrowdown: 1, arrowup: -1 }[key];
  const number = isGrid ? classOf(key) : 0;
  const action = actionOf(key);
  if (isItsOwn) {
    if (event.repeat) event.preventDefault();
  } else if (scrolls(key)) {
    event.preventDefault();
    item.scrollOn();
  } else if (isGrid && by) {
    event.preventDefault();
    grid.step(by);
  } else if (number || action) {
    event.preventDefault();
    if (event.repeat) return;
    if (number && mayAnswer()) grid.cycle(number);
    if (find(action)?.getAttribute("aria-disabled") !== "true") view.flash(find(action));
    if (action) ACTIONS[action]();
  }
}

// Have the buttons, the keys and the window heard.
function listen() {
  for (const [id, act] of Object.entries(ACTIONS)) {
    find(id)?.addEventListener("click", (event) => {
      if (event.detail) view.focusStage(); // by pointer: a dialog gives the focus back to it
      act();
      if (!isDialogOpen()) view.focusStage();
    });
  }
  find("more")?.addEventListener("click", grid.showUnseen);
  item.listenToItem(answer);
  listenToHelp();
  document.addEventListener("keydown", pressKey);
  document.addEventListener("visibilitychange", watchVisibility);
  addEventListener("beforeunload", (event) => {
    if (countUnsent() && !isStopped()) event.preventDefault();
  });
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}

// The page is closed or reloaded: give its cards back, but those whose answers are on their way.
function leave() {
  keepCards();
  sendLast("/api/release", { tab, keep: unsentCards() });
}

// Begin: find out which tab this is, send what was left, and get cards.
async function start() {
  const owner = document.body.dataset.page;
  const found = await findTab(owner);
  tab = found.tab;
  history = load(sessionStorage, `comes-history-${tab}`) ?? [];
  const on = { changed: goOn, lost: lose, stopped: stop };
  queues.push(...[tab, ...found.left].map((one) => new AnswerQueue(one, owner, on)));
  await Promise.all(found.ended.map(end));
  listen();
  keepForOffline();
  await introduceOnce(owner);
  for (const queue of queues) queue.run();
}

// Give the cards of a tab back that ended, perhaps without a word, as when the browser was killed.
async function end(ended) {
  const reply = await post("/api/release", { tab: ended, keep: unsentCards() });
  if (reply.status === 200) forgetTab(ended);
}

start();
