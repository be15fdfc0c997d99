// The grid: all open classes of one item, each with no, cannot tell and yes, in the order of the
// project. A class counts once the person has answered it; one that was never seen has no answer.

import { keyFor, keyOfClass, showGuidelines } from "./help.js";
import {
  CHOICES, SHAPES, find, focusStage, hasOwnQuestion, make, say, setFlag, showGridQuestion, writeGuess,
} from "./view.js";
import { word } from "./words.js";

const said = new Map(); // card -> its answer
const seen = new Set(); // cards that were on the screen
const rows = new Map(); // card -> its row

let shown = [];
let cursor = null; // the card that the answer keys are for
let mayAnswer = () => true;

const SEEN = 0.75; // of a row, or of the room for rows where a row is taller, is on the screen
const threshold = Array.from({ length: 100 }, (_, k) => (k + 1) / 100);
const observer = find("classes") && new IntersectionObserver(note, { threshold });

// Show the classes of an item; `allowed` says whether an answer may be given now.
export function showClasses(cards, allowed) {
  mayAnswer = allowed;
  shown = [...cards].sort((one, other) => one.class_number - other.class_number);
  rows.clear();
  seen.clear();
  observer.disconnect();
  for (const card of shown) rows.set(card.card, makeRow(card));
  find("classes").replaceChildren(...rows.values());
  find("classes").scrollTop = 0;
  for (const row of rows.values()) observer.observe(row);
  cursor = null;
  showGridQuestion();
  moveTo(shown.find((card) => !said.has(card.card)) ?? shown[0], false);
  refresh();
}

// Make the row of a class: its key, its name, and a button for each answer.
function makeRow(card) {
  const key = keyOfClass(card.class_number);
  const label = make("p", { className: "label", id: `class-${card.card}` });
  if (key) {
    const hint = make("kbd", { textContent: key });
    hint.setAttribute("aria-hidden", "true");
    label.append(hint, " ");
  }
  label.append(make("bdi", { className: "name", textContent: card.class }));
  const more = [hasOwnQuestion(card) ? card.question : "", card.description].filter(Boolean).join(" ");
  if (more) label.append(" ", make("span", { className: "description", textContent: more }));
  const guess = writeGuess(card.hint);
  if (guess) label.append(" ", make("span", { className: "guess", textContent: guess }));
  const row = make("div", { className: "row" }, label, ...CHOICES.map((answer) => makeChoice(card, answer)));
  row.dataset.card = card.card;
  row.dataset.number = card.class_number;
  row.setAttribute("role", "group");
  row.setAttribute("aria-labelledby", label.id);
  return row;
}

// Make the button of one answer.
function makeChoice(card, answer) {
  const shape = make("span", { className: "shape" }, SHAPES[answer]);
  shape.setAttribute("aria-hidden", "true");
  const button = make("button", { type: "button", className: `choice ${answer}` }, shape, " ", word(`answer.${answer}`));
  button.dataset.answer = answer;
  button.addEventListener("click", (event) => {
    if (!mayAnswer()) return;
    moveTo(card, false);
    set(card, said.get(card.card) === answer ? null : answer);
    if (event.detail) focusStage(); // by pointer: the next Enter is for Done
  });
  return button;
}

// Note which rows are on the screen.
function note(entries) {
  const room = Math.min(find("classes").clientHeight, innerHeight);
  for (const { target, intersectionRatio, intersectionRect } of entries) {
    if (intersectionRatio >= SEEN || intersectionRect.height >= SEEN * room) seen.add(Number(target.dataset.card));
  }
  refresh();
}

// Set the answer of a class; null takes it away.
function set(card, answer) {
  if (answer === null) said.delete(card.card);
  else said.set(card.card, answer);
  seen.add(card.card);
  refresh();
}

// Show what is answered, what is left, and whether all is done.
function refresh() {
  for (const [number, row] of rows) {
    const answer = said.get(number);
    row.dataset.said = answer ?? "";
    for (const button of row.querySelectorAll(".choice")) {
      button.setAttribute("aria-pressed", String(button.dataset.answer === answer));
    }
  }
  const open = openCards();
  const below = shown.filter((card) => !seen.has(card.card)).length;
  find("more").hidden = !below;
  find("more").textContent = word("grid.more", { n: below });
  find("open").textContent = open.length ? word("grid.open", { n: open.length }) : word("grid.complete");
  setFlag("complete", !open.length);
}

// The classes without an answer.
function openCards() {
  return shown.filter((card) => !said.has(card.card));
}

// The card that the keys are for.
export const current = () => cursor;

// Have the answer keys mean another class.
function moveTo(card, isScrolled = true) {
  if (card !== cursor) showGuidelines(card);
  rows.get(cursor?.card)?.removeAttribute("aria-current");
  cursor = card;
  const row = rows.get(card?.card);
  row?.setAttribute("aria-current", "true");
  if (isScrolled) row?.scrollIntoView({ block: "nearest" });
}

// Go to the class before or after.
export function step(by) {
  const i = shown.indexOf(cursor) + by;
  if (shown[i]) moveTo(shown[i]);
}

// Answer the class that the keys are for, and go to the next one without an answer; scroll to one that
// was not on the screen.
export function answerHere(answer) {
  if (!cursor || !CHOICES.includes(answer)) return;
  if (!seen.has(cursor.card)) {
    moveTo(cursor);
    return;
  }
  set(cursor, answer);
  const i = shown.indexOf(cursor);
  const next = [...shown.slice(i + 1), ...shown.slice(0, i)].find((card) => !said.has(card.card));
  if (next) moveTo(next);
}

// Give the class with a number its next answer: yes, cannot tell, no, none.
export function cycle(number) {
  const card = shown.find((one) => one.class_number === number);
  if (!card) {
    say(word("grid.not_asked"));
    return;
  }
  const order = [null, ...CHOICES].reverse();
  moveTo(card);
  set(card, order[(order.indexOf(said.get(card.card) ?? null) + 1) % order.length]);
}

// Give all classes that were seen and have no answer the same one.
export function answerRest(answer) {
  const open = openCards();
  for (const card of open) if (seen.has(card.card)) said.set(card.card, answer);
  refresh();
  showUnseen();
}

// Scroll to the first class that was not seen yet; return whether there is one.
export function showUnseen() {
  const unseen = shown.find((card) => !seen.has(card.card));
  if (unseen) rows.get(unseen.card).scrollIntoView({ block: "start", behavior: "smooth" });
  return Boolean(unseen);
}

// Return [card, answer] of all classes; null, after saying why, while one has no answer.
export function complete() {
  const open = openCards();
  if (!open.length) return take("skip");
  if (showUnseen()) say(word("grid.unseen"));
  else say(word("grid.missing", { n: open.length, key: keyFor("rest-no") }));
  if (seen.has(open[0].card)) moveTo(open[0]);
  return null;
}

// Return [card, answer] of all classes, with another word for those without an answer.
export function take(other) {
  const given = shown.map((card) => [card, said.get(card.card) ?? other]);
  for (const card of shown) said.delete(card.card);
  return given;
}

// Remember an answer that was taken back.
export function restore(card, answer) {
  if (answer !== "skip") said.set(card.card, answer);
}
