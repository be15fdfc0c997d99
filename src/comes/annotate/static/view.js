// What the annotation pages show, and nothing of what they know: each function writes to the page.
// Text of the server goes in as text, never as markup.

const GRID_KEYS = "123456789qwertyuiop";
const EXPIRED = "The token has expired: open the address that you were given again.";
export const WORDS = { no: "surely not", maybe: "maybe", skip: "skipped" };

export const find = (id) => document.getElementById(id);
export const page = find("page");
export const isGrid = page?.dataset.mode === "grid";

let noticeTimer;
let nLate = 0; // answers that the notice says came too late

// Make an element with properties and children.
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// Write a number with its words.
export function count(number, one, many) {
  return `${number} ${number === 1 ? one : many}`;
}

// The page is starting, loading, saving, shown, broken, finished, or stopped; buttons follow.
export function setState(state) {
  page.dataset.state = state;
  const setDisabled = (button, is) => button.setAttribute("aria-disabled", String(is));
  for (const button of page.querySelectorAll("#no, #maybe, #done, .toggle")) {
    setDisabled(button, state !== "shown");
  }
  setDisabled(find("skip"), !["shown", "broken", "loading"].includes(state));
}

// Put the focus where the item is, so that Space and Enter are not for a button.
export function focusStage() {
  find("stage").focus({ preventScroll: true });
}

// Let a button blink that was pressed by its key.
export function flash(button) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  button.animate([{ filter: "brightness(1.35)" }, { filter: "none" }], 180);
}

// ---- messages

// Say something for a while.
export function say(text, isAboutLoss = false) {
  clearTimeout(noticeTimer);
  find("notice").textContent = text;
  find("notice").classList.toggle("loss", isAboutLoss);
  if (!isAboutLoss) nLate = 0;
  if (text) noticeTimer = setTimeout(() => say(""), isAboutLoss ? 20_000 : 5_000);
}

// Say that one more answer came too late.
export function sayLate() {
  nLate += 1;
  const who = nLate === 1 ? "another person has answered that card" : "other people have answered those cards";
  say(`${count(nLate, "answer", "answers")} came too late: ${who}.`, true);
}

// A next card is shown: end what was said, unless it was about lost answers.
export function endNotice() {
  if (!find("notice").classList.contains("loss")) say("");
}

// Tell a screen reader.
export function announce(...words) {
  find("announcement").textContent = words.filter(Boolean).join(" ");
}

// Say what keeps answers or cards from coming through.
export function showNetwork(nWaiting, isFailing, cannotFetch) {
  let text = cannotFetch ? "Server unreachable. Trying again…" : "";
  if (nWaiting && (isFailing || cannotFetch)) {
    text = `Server unreachable; your answers are safe (${count(nWaiting, "waits", "wait")})`;
  }
  if (find("network").textContent !== text) find("network").textContent = text;
}

// Say why nothing goes on.
export function showStop({ status, body }, nUnsent) {
  setState("stopped");
  const kept = nUnsent ? ` ${count(nUnsent, "answer is", "answers are")} kept in this browser until then.` : "";
  find("alarm").textContent = refusal({ status, body }) + kept;
}

// Put a refusal in words.
export function refusal({ status, body }) {
  if (status === 401) return EXPIRED;
  return body.error ? `The server refuses: ${body.error}.` : "The server does not answer. Try again.";
}

// Ask whether a person has answered before under a name that looks like the one that was given.
export function askIfSame(known, goOn) {
  const yes = make("button", { type: "button", id: "same" }, `Yes, I am ${known}`);
  const no = make("button", { type: "button", id: "other" }, "No, I am another person");
  const asked = make("div", { id: "asked", role: "group" }, yes, " ", no);
  find("asked")?.remove();
  find("alarm").textContent = `Are you ${known}, who has joined before?`;
  find("alarm").after(asked);
  yes.addEventListener("click", goOn);
  no.addEventListener("click", () => {
    asked.remove();
    find("alarm").textContent = "Then choose a name that differs in more than blanks and capitals.";
    find("name").select();
  });
  yes.focus();
}

// Show how far everybody is, and how fast this person is; the pace is 0 where it is unknown.
export function showProgress({ total, done, mine }, pace, canUndo) {
  find("progress").max = Math.max(total, 1);
  find("progress").value = done;
  find("counts").textContent = `${done} of ${total} cards, ${mine} by you`;
  find("pace").textContent = pace ? `${Math.round(pace)} per minute` : "";
  find("undo").setAttribute("aria-disabled", String(!canUndo));
}

// ---- the question

// Ask about the class of a card, and say so when it is another one than before.
export function showQuestion(card, isChange, before) {
  const ask = make("span", { className: "ask" }, "Is this surely not");
  const name = make("bdi", { id: "class", textContent: card.class });
  find("heading").replaceChildren(ask, " ", name, "?");
  find("description").textContent = card.description;
  find("change").hidden = !isChange;
  find("previous").textContent = before ? `You said: ${WORDS[before]}` : "";
  for (const answer of Object.keys(WORDS)) find(answer).classList.toggle("before", before === answer);
}

// Show the classes of an item as buttons that are pressed for "surely not".
export function showGrid(cards, pressed, toggle) {
  find("heading").textContent = "What is this surely not?";
  find("description").textContent = "";
  find("classes").scrollTop = 0;
  find("classes").replaceChildren(...cards.map((card, i) => makeToggle(card, GRID_KEYS[i], pressed, toggle)));
}

// Make the button of a class; the first nineteen have a key.
function makeToggle(card, key, pressed, toggle) {
  const name = make("bdi", { className: "name", textContent: card.class });
  const description = make("span", { className: "description", textContent: card.description });
  const button = make("button", { type: "button", className: "toggle" }, name, " ", description);
  if (key) {
    const hint = make("kbd", { textContent: key });
    hint.setAttribute("aria-hidden", "true");
    button.prepend(hint);
    button.setAttribute("aria-keyshortcuts", key.toUpperCase());
  }
  button.dataset.card = card.card;
  button.setAttribute("aria-pressed", String(pressed.has(card.card)));
  button.addEventListener("click", (event) => {
    toggle(button);
    if (event.detail) focusStage(); // by pointer: the next Enter is for Done
  });
  return button;
}

// Return the button of the grid that has a key.
export function toggleOf(key) {
  return find("classes")?.children[GRID_KEYS.indexOf(key)] ?? null;
}

// ---- the item

// Show a text.
export function showText(text) {
  find("item").replaceChildren(make("div", { className: "text", dir: "auto", textContent: text || "(no text)" }));
  setState("shown");
}

// Show a picture that has loaded.
export function showPicture(image, name) {
  image.alt = name;
  find("item").replaceChildren(image);
  setState("shown");
}

// Say that a picture is broken.
export function showBroken() {
  find("item").replaceChildren(make("p", { className: "broken" }, "This picture cannot be read"));
  setState("broken");
}

// Show a word where the item will be.
export function showWaiting(state, text) {
  if (page.dataset.state !== state) find("item").replaceChildren(make("p", { className: "waiting" }, text));
  setState(state);
}

// Name what is shown.
export function showName(name) {
  find("item-name").textContent = name;
  find("stage").scrollTop = 0;
}

// Say that no card is left, and offer to look again.
export function showFinished(nWaiting, lookAgain, isFrozen) {
  let rest = nWaiting
    ? `${count(nWaiting, "is", "are")} with others, or ${nWaiting === 1 ? "waits" : "wait"} for a second person`
    : "";
  if (isFrozen) rest = "The project is frozen: its lead takes no more answers for now. Yours are kept.";
  const again = make("button", { id: "again", type: "button" }, "Look again");
  again.addEventListener("click", lookAgain);
  find("heading").textContent = "No card is left for you";
  find("description").textContent = rest;
  find("item").replaceChildren(again);
  find("classes")?.replaceChildren();
  if (find("change")) find("change").hidden = true;
  find("previous").textContent = "";
  showName("");
  announce("No card is left for you.", rest);
  setState("finished");
}
