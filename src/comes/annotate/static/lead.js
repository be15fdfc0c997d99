// Keeps the lead's page fresh: fetches it again every ten seconds, and replaces what is in <main>.
// It does not while the checkbox #live is off, the page is hidden, or somebody writes into a field.

const EVERY = 10_000; // milliseconds
const PATIENCE = 8_000;
const FIELDS = "main :is(textarea, select, input:not([type=checkbox], [type=radio], [type=hidden]))";

let lastText = null;

// Whether the page is to be refreshed now.
function isDue() {
  const isOn = document.getElementById("live")?.checked ?? true;
  return isOn && !document.hidden && !document.activeElement?.matches(FIELDS);
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

// Show what is new; where nothing comes, the old content stays, and is marked as stale.
async function refresh() {
  if (!isDue()) return;
  const text = await fetchPage();
  document.querySelector("main").classList.toggle("stale", text === null);
  if (text === null || text === lastText || !isDue()) return;
  lastText = text;
  const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("main");
  if (fresh) replaceContent(fresh);
}

setInterval(refresh, EVERY);
document.addEventListener("visibilitychange", refresh);
