// The guidelines of a class in a panel beside the item: a text and example pictures of the project.
// Of Markdown, headings, lists, bold and italics are shown; all else is shown as it was written.

import { load, save } from "./queue.js";
import { find, make } from "./view.js";
import { word } from "./words.js";

const KEPT = "comes-guidelines"; // whether the panel is open
const fetched = new Map(); // class number -> promise of its guidelines

let current = null;

// Return the guidelines of a class; null where it has none, or they cannot be fetched now.
async function fetchGuidelines(number) {
  if (!fetched.has(number)) {
    const reply = fetch(`/api/guidelines/${number}`).then((got) => (got.ok ? got.json() : null));
    fetched.set(number, reply.catch(() => (fetched.delete(number), null)));
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
export function writeMarkdown(text) {
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

// Show the guidelines of a class in the panel, where it is open.
export async function showGuidelines(card) {
  current = card;
  const panel = find("guide");
  if (!panel || panel.hidden || !card) return;
  const found = await fetchGuidelines(card.class_number);
  if (current !== card) return;
  find("guide-class").textContent = card.class;
  const pictures = Array.from({ length: found?.pictures ?? 0 }, (_, k) => {
    const alt = word("guide.picture", { n: k + 1, class: card.class });
    return make("img", { src: `/guidelines/${card.class_number}/${k + 1}`, alt, loading: "lazy" });
  });
  const text = found?.is_markdown ? writeMarkdown(found.text) : [make("p", { className: "as-written" }, found?.text ?? "")];
  const none = make("p", { className: "faint" }, word("guide.none"));
  const isEmpty = !found || (!found.text && !pictures.length);
  find("guide-text").replaceChildren(...(isEmpty ? [none] : [...text, ...pictures]));
  find("guide-text").scrollTop = 0;
}

// Open or close the panel.
export function toggleGuidelines() {
  const panel = find("guide");
  if (!panel) return;
  panel.hidden = !panel.hidden;
  save(localStorage, KEPT, !panel.hidden);
  find("guidelines").setAttribute("aria-expanded", String(!panel.hidden));
  if (panel.hidden) find("stage").focus();
  else showGuidelines(current);
}

// Open the panel as it was left on a wide screen, and have its button heard.
export function listenToGuidelines() {
  if (!find("guide")) return;
  find("guide-close").addEventListener("click", toggleGuidelines);
  if (load(localStorage, KEPT) && matchMedia("(min-width: 56rem)").matches) toggleGuidelines();
}
