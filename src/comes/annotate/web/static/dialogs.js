// The dialogs of the page: help with the keys, which can be changed there, and a note on a card.

import { actions, chooseKey, keyFor, keyOf, resetKeys } from "./keys.js";
import { post } from "./queue.js";
import { find, isGrid, make, refusal, say } from "./view.js";
import { chooseLanguage, word } from "./words.js";

// How a key is written.
export function writeKey(key) {
  const names = { " ": word("key.space"), enter: word("key.enter"), escape: "esc" };
  return names[key] ?? key;
}

// Write the keys on the buttons.
export function labelButtons() {
  for (const hint of document.querySelectorAll("kbd[data-action]")) {
    const key = keyFor(hint.dataset.action);
    hint.textContent = writeKey(key);
    const shortcut = key === " " ? "Space" : key.length === 1 ? key.toUpperCase() : "Enter";
    hint.closest("button")?.setAttribute("aria-keyshortcuts", shortcut);
  }
}

// ---- help

// The actions that this page has.
function shownActions() {
  return actions().filter((action) => find(action) || (isGrid && action !== "guidelines"));
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
  const take = (event) => {
    if (["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    end();
    const key = keyOf(event);
    const taken = key === "escape" || key === "tab" ? null : chooseKey(action, key);
    listKeys();
    labelButtons();
    if (taken) find("key-alarm").textContent = word("keys.taken", { key: writeKey(key), action: word(`action.${taken}`) });
    [...find("key-list").querySelectorAll("button")][shownActions().indexOf(action)].focus();
  };
  const end = () => {
    button.removeEventListener("keydown", take);
    button.removeEventListener("blur", leave);
  };
  const leave = () => {
    end();
    button.textContent = writeKey(keyFor(action));
  };
  button.addEventListener("keydown", take);
  button.addEventListener("blur", leave);
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

// ---- all of them

// Whether a dialog is open, so that keys are not for the cards.
export function isOpen() {
  return Boolean(document.querySelector("dialog[open]"));
}

// Have the dialogs heard; `introduce` shows the introduction again.
export function listenToDialogs(introduce) {
  for (const dialog of document.querySelectorAll("dialog")) {
    for (const button of dialog.querySelectorAll(".close")) button.addEventListener("click", () => dialog.close());
  }
  find("note-form").addEventListener("submit", sendNote);
  find("keys-reset").addEventListener("click", () => {
    resetKeys();
    listKeys();
    labelButtons();
  });
  find("introduce").addEventListener("click", () => {
    find("help-dialog").close();
    introduce();
  });
  find("language").addEventListener("change", (event) => chooseLanguage(event.target.value));
  labelButtons();
}
