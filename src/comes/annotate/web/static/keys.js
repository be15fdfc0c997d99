// Which key does what. People may choose their own keys; they are kept in this browser.

import { load, save } from "./queue.js";

const KEPT = "comes-keys";
const DEFAULTS = { no: "x", maybe: " ", yes: "y", skip: "s", undo: "z", note: "c", guidelines: "g" };
const FIXED = { enter: "done", "?": "help", "+": "larger", "-": "smaller", n: "rest-no", m: "rest-maybe" };
const OF_CLASSES = "1234567890qwertuiopadfhjklvb"; // of the grid: the first for class number 1

let chosen = { ...DEFAULTS, ...(load(localStorage, KEPT) ?? {}) };

// The actions whose keys can be chosen.
export const actions = () => Object.keys(DEFAULTS);

// The key of an action.
export const keyFor = (action) => chosen[action] ?? Object.keys(FIXED).find((key) => FIXED[key] === action);

// What a key does; null where it does nothing.
export function actionOf(key) {
  return actions().find((action) => chosen[action] === key) ?? FIXED[key] ?? null;
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

// Give an action another key; return the action that has it, where it is taken.
export function chooseKey(action, key) {
  const taken = actionOf(key) ?? (/^[0-9]$/.test(key) ? "class" : null);
  if (taken !== null && taken !== action) return taken;
  chosen = { ...chosen, [action]: key };
  save(localStorage, KEPT, chosen);
  return null;
}

// Take the keys that everybody begins with.
export function resetKeys() {
  chosen = { ...DEFAULTS };
  localStorage.removeItem(KEPT);
}

// The key of an event as it is written on the page, whatever the layout of the keyboard.
export function keyOf(event) {
  const digit = /^(?:Digit|Numpad)([0-9])$/.exec(event.code);
  if (digit && event.key.length === 1 && /[^?+-]/.test(event.key)) return digit[1];
  const letter = /^Key([A-Z])$/.exec(event.code);
  const isLatin = /^[ -~]+$/.test(event.key);
  return (letter && !isLatin ? letter[1] : event.key).toLowerCase();
}
