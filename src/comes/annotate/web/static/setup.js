// A new project: sends files one by one, counts what there will be, and makes it.

import { listenToDrops, post, showQuestion, tell } from "./requests.js";
import { find, make } from "./view.js";

const PAUSE = 500; // milliseconds after typing
const MAKING = 3_600_000; // all pictures are looked at
const form = find("setup");
const list = document.querySelector("#file-list ul");
const tables = /\.(csv|tsv|csv\.gz|tsv\.gz|parquet|xlsx|jsonl)$/i;
const questions = JSON.parse(form.dataset.questions);
const files = new Map(JSON.parse(list.dataset.files).map(({ name, size }) => [name, size]));
let found = null; // how many items there are, and of which kind

// ---- files

// Send a file; say how much of it has gone. Returns what is wrong, or nothing.
function sendFile(file, tellPart) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest(); // fetch does not tell how far it is
    request.open("PUT", `/api/setup/files/${encodeURIComponent(file.name)}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.responseType = "json";
    request.upload.addEventListener("progress", ({ loaded }) => tellPart(loaded));
    request.addEventListener("loadend", () => {
      if (request.status === 200) files.set(request.response.name, request.response.size);
      resolve(request.status === 200 ? "" : (request.response?.error ?? "the server cannot be reached"));
    });
    request.send(file);
  });
}

// Send files one after the other; those that are refused are named with the reason.
async function sendFiles(chosen) {
  const [all, whole] = [[...chosen], chosen.reduce((sum, file) => sum + file.size, 0)];
  let [done, gone] = [0, 0];
  const refused = [];
  find("sent").hidden = false;
  for (const file of all) {
    const show = (part) => {
      find("sent").value = (gone + part) / Math.max(whole, 1);
      find("sending").textContent = `Sending ${file.name}, ${done + 1} of ${all.length}`;
    };
    show(0);
    const error = file.size > Number(form.dataset.largest) ? "it is too large" : await sendFile(file, show);
    if (error) refused.push(`${file.name}: ${error}.`);
    done += 1;
    gone += file.size;
  }
  find("sent").hidden = true;
  find("sending").textContent = "";
  showRefused(refused);
  listFiles();
  await countItems();
}

// Say what was refused, and why.
function showRefused(texts) {
  find("refused").hidden = !texts.length;
  find("refused").replaceChildren(...texts.map((text) => make("li", {}, text)));
}

let queue = Promise.resolve(); // what is dropped meanwhile waits

function queueFiles(chosen) {
  queue = queue
    .then(() => chosen)
    .then((ready) => ready.length && sendFiles(ready))
    .catch((error) => showRefused([`What was dropped cannot be read: ${error.message}`]));
}

// Return the files of a drop; those in folders, too.
async function readDrop({ items }) {
  const entries = [...items].map((item) => item.webkitGetAsEntry() ?? item.getAsFile()).filter(Boolean);
  const read = [];
  while (entries.length) {
    const entry = entries.shift();
    if (entry instanceof File) read.push(entry);
    else if (entry.isFile) read.push(await new Promise((resolve, reject) => entry.file(resolve, reject)));
    else {
      const reader = entry.createReader();
      for (let part = null; part === null || part.length; entries.push(...part)) {
        part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      }
    }
  }
  return read.filter((file) => !file.name.startsWith("."));
}

// Show which files there are.
function listFiles() {
  const bytes = [...files.values()].reduce((sum, size) => sum + size, 0);
  find("file-list").hidden = !files.size;
  const size = bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  find("file-list").querySelector("summary").textContent = `${files.size} ${files.size === 1 ? "file" : "files"}, ${size}`;
  const shown = [...files.keys()].slice(0, Number(list.dataset.shown)).map((name) => {
    const button = make("button", { type: "button", className: "small" }, "remove");
    button.setAttribute("aria-label", `remove ${name}`);
    button.addEventListener("click", () => removeFiles(name));
    return make("li", {}, `${name} `, button);
  });
  if (files.size > shown.length) shown.push(make("li", {}, `and ${files.size - shown.length} more`));
  list.replaceChildren(...shown);
}

async function removeFiles(name) {
  const { error } = await post("/api/setup/remove", { name });
  if (error) return tellField("items", { error });
  if (name === null) files.clear();
  else files.delete(name);
  listFiles();
  return countItems();
}

// ---- what there will be

function tellField(field, reply) {
  const place = form.querySelector(`[data-field="${field}"]`) ?? form.querySelector('[data-field="project"]');
  tell(place, reply);
  if (reply.error) place.scrollIntoView({ block: "nearest" });
}

// Ask the server how many items there are.
async function countItems() {
  const place = form.elements.place.value.trim();
  const isTable = tables.test(place) || (!place && [...files.keys()].some((name) => tables.test(name)));
  find("of-tables").hidden = !isTable;
  find("of-pictures").hidden = isTable;
  found = null;
  if (place || files.size) {
    const reply = await post("/api/setup/items", { place, text_column: form.elements.text_column.value });
    if (!reply.error) found = reply;
    const things = { image: "pictures", text: "texts" };
    tellField("items", reply.error ? reply : { done: `${reply.count} ${things[reply.kind]} found.` });
  } else {
    tellField("items", {});
  }
  show();
}

// The names of the classes that were typed.
function nameClasses() {
  const lines = form.elements.classes.value.split("\n").map((line) => line.trim());
  return lines.filter(Boolean).map((line) => line.split(": ")[0].trim());
}

// Show the question, and how many cards there will be.
function show() {
  const fields = form.querySelector(".asking");
  fields.dataset.usual = JSON.stringify(questions[found?.kind ?? "image"]);
  fields.dataset.examples = JSON.stringify(nameClasses().slice(0, 1));
  showQuestion(fields);
  const [items, classes] = [found?.count ?? 0, nameClasses().length];
  const [rate, overlap] = [Number(form.elements.rate.value), Number(form.elements.overlap.value)];
  const asked = Math.round(rate * items);
  const twice = form.elements.by.value === "item" ? Math.round(overlap * asked) * classes : Math.round(overlap * asked * classes);
  const more = twice ? `, and ${twice} of them for a second person: ${asked * classes + twice}` : "";
  find("cards").textContent = items && classes
    ? `${items} items × ${classes} ${classes === 1 ? "class" : "classes"} × ${rate} = ${asked * classes} cards${more}.`
    : "Once there are items and classes, this says how many cards they make.";
}

// ---- the project

async function makeProject() {
  const fields = new FormData(form);
  for (const section of form.querySelectorAll("[data-field]")) if (section.dataset.field !== "items") tell(section, {});
  const button = form.querySelector("[type=submit]");
  button.disabled = true;
  tellField("project", { done: found?.kind === "text" ? "Making the project …" : "Looking at all pictures; this may take a while …" });
  await queue;
  const texts = ["place", "text_column", "classes", "question", "language", "by"];
  const reply = await post("/api/setup/project", {
    ...Object.fromEntries(texts.map((name) => [name, fields.get(name)])),
    skip_broken: fields.has("skip_broken"),
    asks_yes: fields.has("asks_yes"),
    rate: Number(fields.get("rate")),
    overlap: Number(fields.get("overlap")),
  }, MAKING);
  tellField("project", {});
  button.disabled = Boolean(reply.next);
  if (reply.error) return tellField(reply.field ?? "project", reply);
  sessionStorage.removeItem(draftKey);
  if (!reply.warnings.length) return location.assign(reply.next);
  tellField("project", { done: "The project is made." });
  find("warnings").hidden = find("go-on").hidden = false;
  find("warnings").replaceChildren(...reply.warnings.map((text) => make("li", {}, text)));
  return find("go-on").firstElementChild.focus();
}

// ---- what was typed stays after a reload

const draftKey = `comes-setup-${form.dataset.folder}`;
const typed = [...form.querySelectorAll("[name]")];

function keepDraft() {
  const values = typed.map((field) => (["checkbox", "radio"].includes(field.type) ? field.checked : field.value));
  sessionStorage.setItem(draftKey, JSON.stringify(values));
}

function restoreDraft() {
  const values = JSON.parse(sessionStorage.getItem(draftKey) ?? "[]");
  values.forEach((value, k) => {
    if (typed[k]) typed[k][typeof value === "boolean" ? "checked" : "value"] = value;
  });
}

let pause = 0;
form.addEventListener("input", ({ target }) => {
  keepDraft();
  show();
  const section = target.closest("[data-field]");
  if (section.querySelector(".outcome.alarm")) tell(section, {}); // what was wrong is being mended
  if (!["place", "text_column"].includes(target.name)) return;
  clearTimeout(pause);
  pause = setTimeout(countItems, PAUSE);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  makeProject();
});
find("files").addEventListener("change", ({ target }) => {
  queueFiles([...target.files]);
  target.value = "";
});
listenToDrops(find("drop"), (dropped) => queueFiles(readDrop(dropped)));
find("remove-all").addEventListener("click", () => removeFiles(null));
restoreDraft();
listFiles();
countItems();
