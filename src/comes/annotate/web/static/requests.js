// What the pages of the lead send and say.

import { fill } from "./view.js";

export const PATIENCE = 20_000; // milliseconds
const LOST = "no reply came; reload the page to see whether it was changed";

// Send something; return what came back, or { error }.
export async function send(address, options = {}) {
  try {
    const reply = await fetch(address, { signal: AbortSignal.timeout(PATIENCE), ...options });
    const told = await reply.json();
    return reply.ok ? told : { error: LOST, ...told };
  } catch {
    return { error: LOST };
  }
}

// Send an object as json.
export function post(address, body, patience = PATIENCE) {
  const headers = { "Content-Type": "application/json" };
  return send(address, { method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(patience) });
}

// Return a sentence of what the server says.
export function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
}

// Show what became of a form, below it.
export function tell(form, { error, done = "" }) {
  const line = form.querySelector(".outcome");
  line.classList.toggle("alarm", Boolean(error));
  line.textContent = error ? sentence(error) : done;
}

// Word the question of a form as people will read it, as the server does.
export function showQuestion(fields) {
  const template = fields.querySelector("[name=question]");
  const usual = JSON.parse(fields.dataset.usual)[fields.querySelector("[name=language]").value];
  const name = JSON.parse(fields.dataset.examples)[0] || "boat";
  template.placeholder = usual;
  const worded = fill(template.value.trim() || usual, name);
  const hasPlace = !template.value.trim() || template.value.includes("{class}");
  const preview = fields.querySelector(".preview");
  preview.textContent = hasPlace ? `People read: ${worded}` : "Write {class} where the name of the class goes.";
  preview.classList.toggle("alarm", !hasPlace);
}

// Let people drop one file onto a form, or choose it; `take` gets the files.
export function listenToDrops(area, take) {
  for (const kind of ["dragover", "dragleave", "drop"]) {
    area.addEventListener(kind, (event) => {
      if (![...event.dataTransfer.types].includes("Files")) return; // words may be dragged into a field
      event.preventDefault();
      area.classList.toggle("over", kind === "dragover");
      if (kind === "drop") take(event.dataTransfer);
    });
  }
}
