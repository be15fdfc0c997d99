// Keeps the lead's pages fresh: fetches them again every ten seconds, and replaces what is in <main>.
// It does not while the checkbox #live is off, the page is hidden, help is open, or somebody writes
// into a field. Buttons with data-post send their data-body to /api/lead/.

const EVERY = 10_000; // milliseconds
const PATIENCE = 8_000;
const FIELDS = "main :is(textarea, select, input:not([type=checkbox], [type=radio], [type=hidden]))";

let lastText = null;

// Whether the page is to be refreshed now.
function isDue() {
  const isOn = document.getElementById("live")?.checked ?? true;
  const isReading = document.querySelector("main :popover-open") !== null;
  return isOn && !isReading && !document.hidden && !document.activeElement?.matches(FIELDS);
}

// Note what the person did to an element: a tick, words, an open list, scrolling.
function noteState(element) {
  return {
    id: element.id,
    checked: element.checked !== element.defaultChecked ? element.checked : undefined,
    value: element.matches(FIELDS) && element.value !== element.defaultValue ? element.value : undefined,
    open: element.open,
    scrollTop: element.scrollTop,
    scrollLeft: element.scrollLeft,
  };
}

// Do the same to the element that has come in its place.
function restoreState({ id, ...state }) {
  const element = document.getElementById(id);
  for (const [name, value] of Object.entries(state)) {
    if (element && value !== undefined) element[name] = value;
  }
}

// Put fresh content into <main>; focus, scrolling and what the person did stay.
function replaceContent(fresh) {
  const main = document.querySelector("main");
  const focused = main.contains(document.activeElement) ? document.activeElement.id : "";
  const states = Array.from(main.querySelectorAll("[id]"), noteState);
  const [x, y] = [scrollX, scrollY];
  main.replaceChildren(...fresh.childNodes);
  states.forEach(restoreState);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  scrollTo({ left: x, top: y, behavior: "instant" });
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
  const main = document.querySelector("main");
  const line = document.getElementById("updated");
  main.classList.toggle("stale", isStale);
  if (!line) return;
  const seconds = Math.max(0, Math.round(Date.now() / 1000 - Number(main.dataset.made)));
  const age = seconds < 90 ? `${seconds} seconds ago` : `${Math.round(seconds / 60)} minutes ago`;
  const text = isStale
    ? `The server cannot be reached; this is how things were ${age}.`
    : `Last updated ${new Date(1000 * Number(main.dataset.made)).toLocaleTimeString()}`;
  if (line.textContent !== text) line.textContent = text;
}

// Show what is new; where nothing comes, the old content stays, and says how old it is.
async function refresh({ isWanted = false } = {}) {
  if (!isWanted && !isDue()) return;
  const text = await fetchPage();
  if (text === null) sayAge(true);
  if (text === null || (!isWanted && !isDue())) return;
  if (text !== lastText) {
    lastText = text;
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("main");
    if (fresh) {
      replaceContent(fresh);
      document.querySelector("main").dataset.made = fresh.dataset.made;
    }
  }
  sayAge(false);
}

// Send what a button says, then show what it changed.
async function post(button) {
  if (button.dataset.confirm && !confirm(button.dataset.confirm)) return;
  const alarm = document.getElementById("alarm");
  alarm.textContent = "";
  button.disabled = true;
  let problem = "";
  try {
    const reply = await fetch(`/api/lead/${button.dataset.post}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: button.dataset.body,
      signal: AbortSignal.timeout(PATIENCE),
    });
    if (!reply.ok) problem = (await reply.json()).error;
  } catch {
    problem = "the server cannot be reached; nothing was changed";
  }
  button.disabled = false;
  button.focus({ preventScroll: true });
  if (problem) alarm.textContent = `This did not work: ${problem}.`;
  else await refresh({ isWanted: true });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-post]");
  if (button) post(button);
});
setInterval(() => refresh(), EVERY);
document.addEventListener("visibilitychange", () => refresh());
sayAge(false);
