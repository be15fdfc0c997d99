// The lead's pages. Every ten seconds the parts with data-live are fetched again and replaced; what a
// lead works through (answers, disagreements, notes) stays as it is. Buttons with data-post send their
// data-body to /api/lead/, and forms with data-form or data-table what was typed.

import { listenToDrops, PATIENCE, post, send, showQuestion, tell } from "./requests.js";

const EVERY = 10_000; // milliseconds
const STORING = 600_000; // that a table may take
const FIELDS = ":is(textarea, select, input:not([type=checkbox], [type=radio], [type=hidden]))";
const main = document.querySelector("main");

// ---- what is new

let lastText = null;

// Whether the page is to be refreshed now: not while somebody reads help or writes into a live part.
function isDue() {
  const isOn = document.getElementById("live")?.checked ?? true;
  const isReading = main.querySelector(":popover-open") !== null;
  return isOn && !isReading && !document.hidden && !document.activeElement?.matches(`[data-live] ${FIELDS}`);
}

// Note what the person did to an element: an open list, scrolling.
function noteState(element) {
  return { id: element.id, open: element.open, scrollTop: element.scrollTop, scrollLeft: element.scrollLeft };
}

// Do the same to the element that has come in its place.
function restoreState({ id, ...state }) {
  const element = document.getElementById(id);
  for (const [name, value] of Object.entries(state)) {
    if (element && value !== undefined && element[name] !== value) element[name] = value;
  }
}

// Put a fresh part in the place of an old one; focus, scrolling and what is open stay.
function replacePart(old, fresh) {
  if (!fresh || old.isEqualNode(fresh)) return;
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  const states = [old, ...old.querySelectorAll("[id]")].filter((one) => !one.popover).map(noteState);
  old.replaceWith(fresh);
  states.forEach(restoreState);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

// Fetch the text of this page; null where it does not come, or another page does.
async function fetchPage() {
  try {
    const reply = await fetch(location.href, { signal: AbortSignal.timeout(PATIENCE) });
    return reply.ok && !reply.redirected ? await reply.text() : null;
  } catch {
    return null;
  }
}

// Say when the page was last updated, and whether the server can be reached.
function sayAge(isStale) {
  main.classList.toggle("stale", isStale);
  const line = document.getElementById("updated");
  if (!line) return;
  const made = Number(main.querySelector("[data-made]").dataset.made);
  const seconds = Math.max(0, Math.round(Date.now() / 1000 - made));
  const age = seconds < 90 ? `${seconds} seconds ago` : `${Math.round(seconds / 60)} minutes ago`;
  const text = isStale
    ? `The server cannot be reached; this is how things were ${age}.`
    : `Last updated ${new Date(1000 * made).toLocaleTimeString()}`;
  if (line.textContent !== text) line.textContent = text;
}

// Show what is new in the live parts, and in one that was changed.
async function refresh({ isWanted = false, part = "" } = {}) {
  if (!isWanted && !isDue()) return;
  const text = await fetchPage();
  if (text === null) sayAge(true);
  if (text === null || (!isWanted && (!isDue() || text === lastText))) return;
  lastText = text;
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const old of main.querySelectorAll("[data-live]")) replacePart(old, fresh.getElementById(old.id));
  if (part) replacePart(document.getElementById(part), fresh.getElementById(part));
  sayAge(false);
}

// ---- changes

// Say above the page what went wrong.
function complain(error) {
  document.getElementById("alarm").textContent = error ? `This did not work: ${error.replace(/\.$/, "")}.` : "";
  if (error) document.getElementById("alarm").scrollIntoView({ block: "nearest" });
}

// Send what a button says, then show what it changed.
async function pressButton(button) {
  if (button.dataset.confirm && !confirm(button.dataset.confirm)) return;
  button.disabled = true;
  const { error } = await post(`/api/lead/${button.dataset.post}`, JSON.parse(button.dataset.body));
  button.disabled = false;
  button.focus({ preventScroll: true });
  complain(error);
  if (!error) await refresh({ isWanted: true, part: button.dataset.part });
}

// Decide about a pair, or take it back. Nothing moves, and a click meanwhile does nothing.
async function decide(button) {
  const box = button.closest(".decide");
  const verdict = button.dataset.verdict || null;
  if (box.dataset.busy || button.getAttribute("aria-pressed") === "true") return;
  box.dataset.busy = "1";
  const pair = { item: Number(box.dataset.item), class_number: Number(box.dataset.class) };
  const { error, name } = await post("/api/lead/decide", { ...pair, verdict });
  delete box.dataset.busy;
  complain(error);
  if (error) return;
  for (const same of main.querySelectorAll(`.decide[data-item="${pair.item}"][data-class="${pair.class_number}"]`)) {
    showDecision(same, verdict, name);
  }
  if (!verdict) box.querySelector("[data-verdict]").focus({ preventScroll: true });
  await refresh({ isWanted: true });
}

// Show in its place what was decided.
function showDecision(box, verdict, name) {
  for (const choice of box.querySelectorAll(".choices button")) {
    choice.setAttribute("aria-pressed", String(choice.dataset.verdict === verdict));
  }
  const title = verdict ? box.querySelector(`[data-verdict="${verdict}"]`).textContent : "";
  box.classList.toggle("decided", Boolean(verdict));
  box.querySelector("[role=status]").textContent = verdict ? `${box.dataset.done}: ${title}, by ${name}` : "Taken back";
  box.querySelector(".outcome button").hidden = !verdict;
}

// Send what was typed into a form.
async function sendForm(form) {
  const fields = Object.fromEntries(new FormData(form));
  if (form.elements.asks_yes) fields.asks_yes = form.elements.asks_yes.checked;
  const reply = await post(`/api/lead/${form.dataset.form}`, fields);
  tell(form, reply);
  if (reply.links) {
    form.reset();
    showLinks(form, reply.links);
  }
  if (!reply.error) await refresh({ isWanted: true });
}

// Send a table: a file that was chosen or dropped, or what was pasted.
async function sendTable(form) {
  const [file, pasted] = [form.elements.file.files[0], form.elements.table.value.trim()];
  if (!file && !pasted) {
    tell(form, { error: "paste a table, or choose a file" });
    return;
  }
  const name = file ? file.name : pasted.split("\n")[0].includes("\t") ? "pasted.tsv" : "pasted.csv";
  const share = form.elements.share ? `?share=${form.elements.share.value}` : "";
  tell(form, { done: "Storing …" });
  const reply = await send(`/api/lead/table/${form.dataset.table}/${encodeURIComponent(name)}${share}`, {
    method: "PUT",
    headers: { "Content-Type": "application/octet-stream" },
    body: file ?? new Blob([pasted, "\n"]),
    signal: AbortSignal.timeout(STORING),
  });
  tell(form, reply);
  if (reply.error) return;
  form.elements.file.value = form.elements.table.value = ""; // the next table comes anew
  await refresh({ isWanted: true });
}

// Show a new link, this once, for each address of the server.
function showLinks(form, links) {
  form.querySelector(".outcome").textContent = "Copy the link now: it is shown this once.";
  const rows = links.map((link) => {
    const row = document.createElement("li");
    const field = Object.assign(document.createElement("input"), { value: link, readOnly: true });
    field.setAttribute("aria-label", "The link");
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
    button.addEventListener("click", () => copy(field, button));
    row.append(field, button);
    return row;
  });
  form.querySelector(".made").replaceChildren(...rows);
}

// Copy what a field holds. Over plain http only the old command can.
async function copy(field, button) {
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    button.textContent = "Copied";
  } catch {
    button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
  }
}

// ---- help: what a column means, by pointer, focus and tap

function showHelp(button) {
  const help = document.getElementById(button.getAttribute("popovertarget"));
  if (help.matches(":popover-open")) return;
  help.showPopover();
  const place = button.getBoundingClientRect();
  const left = Math.min(place.left, innerWidth - help.offsetWidth - 8);
  const isBelow = place.bottom + help.offsetHeight + 12 < innerHeight;
  Object.assign(help.style, {
    inset: "auto",
    margin: "0",
    left: `${Math.max(8, left)}px`,
    top: `${isBelow ? place.bottom + 4 : Math.max(8, place.top - help.offsetHeight - 4)}px`,
  });
}

function hideHelp(button) {
  document.getElementById(button.getAttribute("popovertarget")).hidePopover();
}

// Have an event heard on buttons of help, new ones too.
function onHelp(kind, act) {
  main.addEventListener(
    kind,
    (event) => {
      const button = event.target instanceof Element && event.target.matches(".about") ? event.target : null;
      if (button) act(button, event);
    },
    true,
  );
}

onHelp("pointerenter", (button, event) => {
  button.removeAttribute("title"); // which would say the same
  if (event.pointerType === "mouse") showHelp(button);
});
onHelp("pointerleave", (button, event) => event.pointerType === "mouse" && hideHelp(button));
onHelp("focusin", (button) => button.matches(":focus-visible") && showHelp(button));
onHelp("focusout", hideHelp);
onHelp("click", (button, event) => {
  event.preventDefault(); // a click would hide what the pointer has shown
  showHelp(button);
});

// ---- all of it

main.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-post], button[data-verdict]");
  if (button) (button.dataset.post ? pressButton : decide)(button);
});
main.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.form && !form.dataset.table) return;
  event.preventDefault();
  (form.dataset.form ? sendForm : sendTable)(form);
});
for (const form of main.querySelectorAll("[data-table]")) {
  listenToDrops(form, ({ files }) => {
    form.elements.file.files = files;
  });
}
for (const fields of main.querySelectorAll(".asking")) {
  fields.addEventListener("input", () => showQuestion(fields));
  showQuestion(fields);
}
// Decided cases are gone from the list: the next ones begin after those that are left open.
document.getElementById("next-ones")?.addEventListener("click", (event) => {
  if (location.search.includes("decided")) return;
  const isOpen = (box) => !box.classList.contains("decided");
  const start = Number(event.currentTarget.dataset.start) + [...main.querySelectorAll(".case .decide")].filter(isOpen).length;
  event.currentTarget.href = `?from=${start}`;
});
setInterval(() => refresh(), EVERY);
document.addEventListener("visibilitychange", () => refresh());
sayAge(false);
