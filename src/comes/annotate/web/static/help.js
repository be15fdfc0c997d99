// What helps to answer: the keys, which people may choose, the help that lists them, a note on a card,
// the guidelines of a class, and an introduction with three example cards.

import { load, post, request, save } from "./queue.js";
import { CHOICES, SHAPES, find, isGrid, make, page, refusal, say } from "./view.js";
import { chooseLanguage, word } from "./words.js";

// ---- keys; those that were chosen are kept in this browser

const KEYS = "comes-keys";
const DEFAULTS = { no: "x", maybe: " ", yes: "y", skip: "s", undo: "z", note: "c", guidelines: "g" };
const CHANGEABLE = Object.keys(DEFAULTS); // the actions whose keys can be chosen
const FIXED = { enter: "done", "?": "help", "+": "larger", "-": "smaller", n: "rest-no", m: "rest-maybe" };
const OF_CLASSES = "1234567890qwertuiopadfhjklvb"; // of the grid: the first for class number 1

let chosen = { ...DEFAULTS, ...(load(localStorage, KEYS) ?? {}) };

// The key of an action.
export const keyFor = (action) => chosen[action] ?? Object.keys(FIXED).find((key) => FIXED[key] === action);

// What a key does; null where it does nothing.
export function actionOf(key) {
  return CHANGEABLE.find((action) => chosen[action] === key) ?? FIXED[key] ?? null;
}

// The key of the class with a number in the grid, the same for every item; undefined without one.
export function keyOfClass(number) {
  const key = OF_CLASSES[number - 1];
  return key && actionOf(key) === null ? key : undefined;
}

// The number of the class that a key stands for in the grid; 0 where it stands for none.
export function classOf(key) {
  return actionOf(key) === null && key.length === 1 ? OF_CLASSES.indexOf(key) + 1 : 0;
}

// The key of an event as it is written on the page, whatever the layout of the keyboard.
export function keyOf(event) {
  const digit = /^(?:Digit|Numpad)([0-9])$/.exec(event.code);
  if (digit && event.key.length === 1 && /[^?+-]/.test(event.key)) return digit[1];
  const letter = /^Key([A-Z])$/.exec(event.code);
  const isLatin = /^[ -~]+$/.test(event.key);
  return (letter && !isLatin ? letter[1] : event.key).toLowerCase();
}

// Give an action another key; return the action that has it, where it is taken.
function chooseKey(action, key) {
  const taken = actionOf(key) ?? (/^[0-9]$/.test(key) ? "class" : null);
  if (taken !== null && taken !== action) return taken;
  chosen = { ...chosen, [action]: key };
  save(localStorage, KEYS, chosen);
  return null;
}

// Take the keys that everybody begins with.
function resetKeys() {
  chosen = { ...DEFAULTS };
  localStorage.removeItem(KEYS);
  listKeys();
  labelButtons();
}

// How a key is written.
function writeKey(key) {
  return { " ": word("key.space"), enter: word("key.enter") }[key] ?? key;
}

// Write the keys on the buttons.
function labelButtons() {
  for (const hint of document.querySelectorAll("kbd[data-action]")) {
    const key = keyFor(hint.dataset.action);
    hint.textContent = writeKey(key);
    const shortcut = key === " " ? "Space" : key.charAt(0).toUpperCase() + key.slice(1);
    hint.closest("button")?.setAttribute("aria-keyshortcuts", shortcut);
  }
}

// ---- help

// The actions that this page has.
function shownActions() {
  return CHANGEABLE.filter((action) => find(action) || (isGrid && CHOICES.includes(action)));
}

// Show the keys; each that can be changed is a button that waits for another key.
function listKeys() {
  const rows = shownActions().map((action) => {
    const button = make("button", { type: "button", className: "key" }, writeKey(keyFor(action)));
    button.setAttribute("aria-label", word("keys.change", { action: word(`action.${action}`) }));
    button.addEventListener("click", () => awaitKey(action, button));
    return make("tr", {}, make("th", { scope: "row" }, word(`action.${action}`)), make("td", {}, button));
  });
  find("key-list").replaceChildren(...rows);
  find("key-alarm").textContent = "";
}

// Take the next key for an action; Escape leaves it as it was.
function awaitKey(action, button) {
  button.textContent = word("keys.press");
  const listening = new AbortController();
  const take = (event) => {
    if (["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    listening.abort();
    const key = keyOf(event);
    const taken = key === "escape" || key === "tab" ? null : chooseKey(action, key);
    listKeys();
    labelButtons();
    if (taken) find("key-alarm").textContent = word("keys.taken", { key: writeKey(key), action: word(`action.${taken}`) });
    [...find("key-list").querySelectorAll("button")][shownActions().indexOf(action)].focus();
  };
  const leave = () => {
    listening.abort();
    button.textContent = writeKey(keyFor(action));
  };
  button.addEventListener("keydown", take, listening);
  button.addEventListener("blur", leave, listening);
}

// Show the keys and what else helps.
export function openHelp() {
  listKeys();
  find("help-dialog").showModal();
}

// ---- notes

let noted = null; // the card, and the tab that holds it

// Ask for words about a card.
export function openNote(card, tab) {
  noted = { card, tab };
  find("note-about").textContent = `${card.class} · ${card.name}`;
  find("note-text").value = "";
  find("note-alarm").textContent = "";
  find("note-dialog").showModal();
  find("note-text").focus();
}

// Send the note; without words it is a flag.
async function sendNote(event) {
  event.preventDefault();
  const text = find("note-text").value.trim();
  const reply = await post("/api/notes", { tab: noted.tab, card: noted.card.card, text });
  if (reply.status !== 200) {
    find("note-alarm").textContent = refusal(reply);
    return;
  }
  find("note-dialog").close();
  say(word("note.sent"));
}

// ---- guidelines: a text and example pictures of the project, in a panel beside the item. Of Markdown,
// headings, lists, bold and italics are shown; all else is shown as it was written.

const PANEL = "comes-guidelines"; // whether the panel is open
const fetched = new Map(); // class number -> its guidelines

let guided = null; // the card whose class they are about

// Return the guidelines of a class; null where it has none, undefined where they cannot be fetched now.
async function fetchGuidelines(number) {
  if (!fetched.has(number)) {
    const { status, body } = await request(`/api/guidelines/${number}`);
    if (status === 200 || status === 404) fetched.set(number, status === 200 ? body : null);
  }
  return fetched.get(number);
}

// Show **bold** and *italic* parts of a line; everything else is text.
function writeLine(line) {
  return line.split(/(\*\*[^*]+\*\*|\*[^*\s][^*]*\*)/).map((part) => {
    if (/^\*\*.+\*\*$/.test(part)) return make("b", {}, part.slice(2, -2));
    if (/^\*.+\*$/.test(part)) return make("i", {}, part.slice(1, -1));
    return part;
  });
}

// Show a small part of Markdown as elements, all of whose text is text.
function writeMarkdown(text) {
  const blocks = [];
  for (const line of text.split(/\r?\n/)) {
    const heading = /^#{1,6}\s+(.*)$/.exec(line);
    const point = /^\s*(?:[-*+]|\d+[.)])\s+(.*)$/.exec(line);
    const last = blocks.at(-1);
    if (!line.trim()) blocks.push(null);
    else if (heading) blocks.push(make("h3", {}, ...writeLine(heading[1])));
    else if (point && last?.tagName === "UL") last.append(make("li", {}, ...writeLine(point[1])));
    else if (point) blocks.push(make("ul", {}, make("li", {}, ...writeLine(point[1]))));
    else if (last?.tagName === "P") last.append(" ", ...writeLine(line));
    else blocks.push(make("p", {}, ...writeLine(line)));
  }
  return blocks.filter(Boolean);
}

// Show the guidelines of a card's class in the panel, where it is open.
export async function showGuidelines(card) {
  guided = card;
  const panel = find("guide");
  if (!panel || panel.hidden || !card) return;
  const found = await fetchGuidelines(card.class_number);
  if (guided !== card) return;
  find("guide-class").textContent = card.class;
  const pictures = Array.from({ length: found?.pictures ?? 0 }, (_, k) => {
    const alt = word("guide.picture", { n: k + 1, class: card.class });
    return make("img", { src: `/guidelines/${card.class_number}/${k + 1}`, alt, loading: "lazy" });
  });
  const text = found?.is_markdown ? writeMarkdown(found.text) : [make("p", { className: "as-written" }, found?.text ?? "")];
  const none = make("p", { className: "faint" }, word(found === undefined ? "guide.lost" : "guide.none"));
  const isEmpty = !found || (!found.text && !pictures.length);
  find("guide-text").replaceChildren(...(isEmpty ? [none] : [...text, ...pictures]));
  find("guide-text").scrollTop = 0;
}

// Open or close the panel.
export function toggleGuidelines() {
  const panel = find("guide");
  if (!panel) return;
  panel.hidden = !panel.hidden;
  save(localStorage, PANEL, !panel.hidden);
  find("guidelines").setAttribute("aria-expanded", String(!panel.hidden));
  if (panel.hidden) find("stage").focus();
  else showGuidelines(guided);
}

// ---- the introduction. Nothing of it is stored but that it was seen; its cards are in the package.

const INTRODUCED = "comes-introduced"; // names of pages whose person has seen it
const EXAMPLES = ["no", "maybe", "yes"]; // the right answer of each card

let number = 0; // of the card, from 0; EXAMPLES.length at the end
let isRight = false; // the card on show has been answered
let finish = null;

// Whether an example is one of yes in a project that does not take yes: "cannot tell" is right there.
const isWithoutYes = () => EXAMPLES[number] === "yes" && page.dataset.yes === "0";

// Show the example card, or the end.
function showExample() {
  const { kind } = page.dataset;
  const isEnd = number === EXAMPLES.length;
  const example = EXAMPLES[number];
  isRight = false;
  find("intro-step").textContent = isEnd ? word("intro.end") : word("intro.step", { n: number + 1, total: EXAMPLES.length });
  find("intro-question").textContent = isEnd ? word("intro.ready") : word(`intro.${kind}.question`);
  const picture = () => make("img", { src: `/static/example-${example}.svg`, alt: word(`intro.image.alt.${example}`) });
  const text = () => make("p", { className: "example" }, word(`intro.text.${example}`));
  const points = () => make("ul", {}, ...["several", "unsure", "undo", "help"].map((point) => make("li", {}, word(`intro.point.${point}`))));
  find("intro-item").replaceChildren(isEnd ? points() : kind === "text" ? text() : picture());
  find("intro-feedback").textContent = isEnd ? "" : word("intro.try");
  find("intro-feedback").className = "";
  find("intro-answers").hidden = isEnd;
  find("intro-next").hidden = !isEnd;
  find("intro-next").textContent = word(isEnd ? "intro.start" : "intro.next");
  find("intro-skip").hidden = isEnd;
  find(isEnd ? "intro-next" : "intro-item").focus();
}

// Say whether an answer is right, and why.
function practise(answer) {
  if (isRight || number === EXAMPLES.length) return;
  isRight = answer === (isWithoutYes() ? "maybe" : EXAMPLES[number]);
  const reason = isWithoutYes() ? "without_yes" : EXAMPLES[number];
  const key = isRight ? `intro.right.${reason}` : `intro.wrong.${reason}`;
  find("intro-feedback").textContent = `${SHAPES[answer]} ${word(`answer.${answer}`)}: ${word(key)}`;
  find("intro-feedback").className = isRight ? "right" : "wrong";
  find("intro-next").hidden = !isRight;
  if (isRight) find("intro-next").focus();
}

// Go to the next card, or end.
function goOn() {
  if (number === EXAMPLES.length) {
    find("introduction").close();
    return;
  }
  number += 1;
  showExample();
}

// Do what a key stands for; the buttons keep their own.
function pressKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  const action = actionOf(keyOf(event));
  if (!EXAMPLES.includes(action) || (action === "yes" && page.dataset.yes === "0")) return;
  if (event.target.closest("button") && (event.key === " " || event.key === "Enter")) return;
  event.preventDefault();
  practise(action);
}

// Show the introduction; ends when it is closed.
function introduce() {
  number = 0;
  find("introduction").showModal();
  showExample();
  return new Promise((resolve) => {
    finish = resolve;
  });
}

// Show the introduction to somebody who has not seen it in this browser.
export async function introduceOnce(owner) {
  const known = load(localStorage, INTRODUCED) ?? [];
  if (known.includes(owner)) return;
  await introduce();
  save(localStorage, INTRODUCED, [...known, owner].slice(-50));
}

// ---- all of it

// Have the dialogs and the panel heard; the panel opens as it was left on a wide screen.
export function listenToHelp() {
  for (const dialog of document.querySelectorAll("dialog")) {
    for (const button of dialog.querySelectorAll(".close")) button.addEventListener("click", () => dialog.close());
  }
  find("keys-reset").addEventListener("click", resetKeys);
  find("language").addEventListener("change", (event) => chooseLanguage(event.target.value));
  find("introduce").addEventListener("click", () => {
    find("help-dialog").close();
    introduce();
  });
  find("note-form").addEventListener("submit", sendNote);
  find("note-text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("note-form").requestSubmit();
  });
  find("guide-close")?.addEventListener("click", toggleGuidelines);
  if (find("guide") && load(localStorage, PANEL) && matchMedia("(min-width: 56rem)").matches) toggleGuidelines();
  for (const answer of EXAMPLES) find(`intro-${answer}`)?.addEventListener("click", () => practise(answer));
  find("intro-next").addEventListener("click", goOn);
  find("intro-skip").addEventListener("click", () => find("introduction").close());
  find("introduction").addEventListener("keydown", pressKey);
  find("introduction").addEventListener("close", () => finish?.());
  labelButtons();
}
