// What the annotation pages show, and nothing of what they know: each function writes to the page.
// Text of the server goes in as text, never as markup.

import { word } from "./words.js";

const TRACE = 1600; // milliseconds that the last answer is shown
const BRIEF = 5_000; // and a message; so long, nothing but a loss takes the place of one about a loss
const ANSWERS = ["no", "maybe", "yes", "skip"];
export const SHAPES = { no: "✕", maybe: "?", yes: "✓", skip: "↷" };

export const find = (id) => document.getElementById(id);
export const page = find("page");
export const isGrid = page?.dataset.mode === "grid";
export const CHOICES = page?.dataset.yes === "0" ? ["no", "maybe"] : ["no", "maybe", "yes"]; // of the project

let noticeTimer;
let traceTimer;
let lossSince = -Infinity;
let nLate = 0; // answers that the notice says came too late

// Make an element with properties and children.
export function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// The page is starting, loading, appearing, shown, broken, finished, or stopped; buttons follow.
export function setState(state) {
  page.dataset.state = state;
  showDisabled();
}

// Set whether another class is asked about than before (guarded), all of the item was on the screen
// (seen), or all classes of the grid have an answer (complete); buttons follow.
export function setFlag(name, is) {
  if (page.dataset[name] === String(is)) return;
  page.dataset[name] = is;
  showDisabled();
}

// Show which buttons do something now.
function showDisabled() {
  const { state, guarded, seen, complete } = page.dataset;
  const setDisabled = (button, is) => button?.setAttribute("aria-disabled", String(is));
  const canAnswer = ["appearing", "shown"].includes(state) && guarded !== "true" && seen === "true";
  for (const button of page.querySelectorAll("#no, #maybe, #yes, .choice, .rest")) setDisabled(button, !canAnswer);
  setDisabled(find("done"), !canAnswer || complete !== "true");
  setDisabled(find("skip"), !["shown", "broken", "loading"].includes(state));
  setDisabled(find("note"), !["shown", "broken"].includes(state));
}

// Whether a dialog is open, so that nothing is for the cards.
export function isDialogOpen() {
  return document.querySelector("dialog[open]") !== null;
}

// Put the focus where the item is, so that Space and Enter are not for a button.
export function focusStage() {
  find("stage").focus({ preventScroll: true });
}

// Let a button blink that was pressed by its key.
export function flash(button) {
  if (!button || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  button.animate([{ filter: "brightness(1.35)" }, { filter: "none" }], 180);
}

// Show which button a swipe would press; null for none.
export function showAim(answer) {
  for (const one of ANSWERS) find(one)?.classList.toggle("aimed", one === answer);
}

// ---- messages

// Say something for a while.
export function say(text, isAboutLoss = false) {
  if (!isAboutLoss && performance.now() - lossSince < BRIEF) return;
  if (isAboutLoss) lossSince = performance.now();
  clearTimeout(noticeTimer);
  find("notice").textContent = text;
  find("notice").classList.toggle("loss", isAboutLoss);
  if (!isAboutLoss) nLate = 0;
  if (text) noticeTimer = setTimeout(() => say(""), isAboutLoss ? 20_000 : BRIEF);
}

// Say that one more answer came too late.
export function sayLate() {
  nLate += 1;
  say(word("late", { n: nLate }), true);
}

// A next card is shown: end what was said, unless it was about lost answers.
export function endNotice() {
  if (!find("notice").classList.contains("loss")) say("");
}

// Tell a screen reader.
export function announce(...words) {
  find("announcement").textContent = words.filter(Boolean).join(" ");
}

// Say that the server cannot be reached, and what is here meanwhile; nothing of what was answered is lost.
export function showNetwork(nCards, nWaiting, isDown) {
  const parts = [];
  if (isDown) parts.push(nCards ? word("network.offline", { n: nCards }) : word("network.cards"));
  if (isDown && nWaiting) parts.push(word("network.answers", { n: nWaiting }));
  const text = parts.join(" ");
  if (find("network").textContent !== text) find("network").textContent = text;
}

// Say why nothing goes on.
export function showStop({ status, body }, nUnsent) {
  setState("stopped");
  const kept = nUnsent ? word("kept", { n: nUnsent }) : "";
  find("alarm").textContent = `${refusal({ status, body })} ${kept}`.trim();
}

// Put a refusal in words.
export function refusal({ status, body }) {
  if (status === 401) return word("refused.token");
  if (status === 403) return word("refused.changed");
  return body.error ? word("refused", { reason: body.error }) : word("refused.silent");
}

// Show how far everybody is, and how fast this person is; the pace is 0 where it is unknown.
export function showProgress({ total, done, mine, left }, pace, canUndo) {
  find("progress").max = Math.max(total, 1);
  find("progress").value = done;
  find("counts").textContent = word("progress", { done, total, mine });
  find("pace").textContent = pace ? word("pace", { n: Math.round(pace) }) : "";
  find("left").textContent = pace && left ? timeLeft(left, pace) : "";
  find("undo").setAttribute("aria-disabled", String(!canUndo));
}

// Say how long it takes to answer so many cards at a pace (per minute).
function timeLeft(left, pace) {
  const minutes = Math.ceil(left / pace);
  return minutes < 90 ? word("left.minutes", { n: minutes }) : word("left.hours", { n: Math.round(minutes / 60) });
}

// Show for a moment what was answered last.
export function showTrace(answers) {
  const trace = find("trace");
  const parts = ANSWERS.filter((answer) => answers.includes(answer)).map((answer) => {
    const n = answers.filter((one) => one === answer).length;
    const text = answers.length > 1 ? `${n} × ${word(`answer.${answer}`)}` : word(`answer.${answer}`);
    return make("span", { className: `said ${answer}` }, `${SHAPES[answer]} ${text}`);
  });
  clearTimeout(traceTimer);
  trace.replaceChildren(...parts);
  traceTimer = setTimeout(() => trace.replaceChildren(), TRACE);
}

// ---- the question

// Put a class into a template; as comes.annotate.asking does.
export function fill(template, name) {
  const article = /^[aeiou8]/i.test(name) ? "an" : "a";
  return template.replace(/\{(class|a)\}/g, (_, place) => (place === "a" ? article : name));
}

// Whether a class is asked about in words of its own.
export function hasOwnQuestion(card) {
  return card.question !== fill(page.dataset.asked, card.class);
}

// Ask about all classes of an item: in the words of the project, with dots for the class.
export function showGridQuestion() {
  const { asked, own, kind } = page.dataset;
  find("guess").textContent = "";
  find("heading").textContent = own === "1" ? fill(asked, "…") : word(`grid.question.${kind}`);
  find("description").textContent = "";
}

// Return the question of a card in three parts, the class in the middle (empty where it is not named).
// A question that the project did not word itself is asked in the language of the page.
function questionOf(card) {
  const { asked, ask } = page.dataset;
  let { question, class_at: at } = card;
  if (ask !== asked && question === fill(asked, card.class)) {
    question = fill(ask, card.class);
    at = fill(ask.slice(0, ask.indexOf("{class}")), card.class).length;
  }
  if (at === null) return [question, "", ""];
  return [question.slice(0, at), card.class, question.slice(at + card.class.length)];
}

// Ask about the class of a card; return the question as text.
export function showQuestion(card, before) {
  const parts = questionOf(card);
  const name = make("bdi", { id: "class", textContent: card.class });
  name.hidden = !parts[1];
  const ask = parts.map((part, i) => (i === 1 ? name : make("span", { className: "ask" }, part)));
  find("heading").replaceChildren(...ask);
  find("description").textContent = card.description;
  find("guess").textContent = writeGuess(card.hint);
  find("previous").textContent = before ? word("said", { answer: word(`answer.${before}`) }) : "";
  for (const answer of ANSWERS) find(answer)?.classList.toggle("before", before === answer);
  return parts.join("");
}

// Say that another class is asked about now; nothing is answered meanwhile.
export function showChange(text) {
  setFlag("guarded", true);
  if (!find("notice").classList.contains("loss")) say(text);
}

// Put a model's probability of yes in words; nothing where there is none.
export function writeGuess(probability) {
  return typeof probability === "number" ? word("guess", { percent: Math.round(100 * probability) }) : "";
}

// ---- the end

// Say that there is no card for this person; return what was done, and a button to look again.
export function showFinished({ mine, seconds = 0 }, nWaiting, isFrozen, lookAgain) {
  const minutes = seconds / 60;
  const facts = [
    [mine, word("own.answers", { n: mine })],
    minutes < 2
      ? [Math.round(seconds), word("own.seconds", { n: Math.round(seconds) })]
      : [Math.round(minutes), word("own.minutes", { n: Math.round(minutes) })],
  ];
  if (minutes > 0) facts.push([Math.round(mine / minutes), word("own.pace")]);
  const numbers = facts.map(([n, text]) => make("li", {}, make("b", {}, String(n)), " ", text));
  const again = make("button", { id: "again", type: "button" }, word("again"));
  again.addEventListener("click", lookAgain);
  const way = isFrozen ? "frozen" : nWaiting ? "waiting" : "finished";
  const rest = word(`end.${way}.more`, { n: nWaiting });
  const mark = make("p", { className: "big", textContent: nWaiting ? "…" : "✓", ariaHidden: "true" });
  const children = [mark, make("p", {}, rest), again];
  if (mine) children.splice(1, 0, make("ul", { className: "numbers" }, ...numbers));
  find("heading").textContent = word(`end.${way}`);
  for (const id of ["description", "guess", "previous", "item-name"]) find(id).textContent = "";
  find("classes")?.replaceChildren();
  endNotice();
  announce(word(`end.${way}`), mine ? facts.map(([n, text]) => `${n} ${text}.`).join(" ") : "", rest);
  setState("finished");
  return make("div", { className: "finished" }, ...children);
}
