// Three example cards on which a new person practises the answers; nothing of this is stored but
// that it was seen. The cards are drawn in the package, and are not of the project.

import { actionOf, keyOf } from "./keys.js";
import { load, save } from "./queue.js";
import { SHAPES, find, make, page } from "./view.js";
import { word } from "./words.js";

const KEPT = "comes-introduced"; // names of pages whose person has seen the introduction
const CARDS = ["no", "maybe", "yes"]; // the right answer of each

let number = 0; // of the card, from 0; CARDS.length at the end
let isRight = false; // the card on show has been answered
let finish = null;

// Return the answer that is right for a card; without yes, what is there is "cannot tell".
function rightAnswer() {
  return CARDS[number] === "yes" && page.dataset.yes === "0" ? "maybe" : CARDS[number];
}

// Show the example card, or the end.
function showCard() {
  const { kind } = page.dataset;
  const isEnd = number === CARDS.length;
  const example = CARDS[number];
  isRight = false;
  find("intro-step").textContent = isEnd ? word("intro.end") : word("intro.step", { n: number + 1, total: CARDS.length });
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
  if (isEnd) find("intro-next").focus();
  else find("intro-item").focus();
}

// Say whether an answer is right, and why.
function practise(answer) {
  if (isRight || number === CARDS.length) return;
  isRight = answer === rightAnswer();
  const reason = CARDS[number] === "yes" && page.dataset.yes === "0" ? "without_yes" : CARDS[number];
  const key = isRight ? `intro.right.${reason}` : `intro.wrong.${reason}`;
  find("intro-feedback").textContent = `${SHAPES[answer]} ${word(`answer.${answer}`)}: ${word(key)}`;
  find("intro-feedback").className = isRight ? "right" : "wrong";
  find("intro-next").hidden = !isRight;
  if (isRight) find("intro-next").focus();
}

// Go to the next card, or end.
function goOn() {
  if (number === CARDS.length) {
    find("introduction").close();
    return;
  }
  number += 1;
  showCard();
}

// Do what a key stands for; the buttons keep their own.
function pressKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  const action = actionOf(keyOf(event));
  if (!["no", "maybe", "yes"].includes(action) || (action === "yes" && page.dataset.yes === "0")) return;
  if (event.target.closest("button") && (event.key === " " || event.key === "Enter")) return;
  event.preventDefault();
  practise(action);
}

// Show the introduction; ends when it is closed.
export function introduce() {
  number = 0;
  showCard();
  find("introduction").showModal();
  find("intro-item").focus();
  return new Promise((resolve) => {
    finish = resolve;
  });
}

// Show the introduction to somebody who has not seen it in this browser.
export async function introduceOnce(owner) {
  const known = load(localStorage, KEPT) ?? [];
  if (known.includes(owner)) return;
  await introduce();
  save(localStorage, KEPT, [...known, owner].slice(-50));
}

// Have the introduction heard.
export function listenToIntroduction() {
  const dialog = find("introduction");
  for (const answer of CARDS) find(`intro-${answer}`)?.addEventListener("click", () => practise(answer));
  find("intro-next").addEventListener("click", goOn);
  find("intro-skip").addEventListener("click", () => dialog.close());
  dialog.addEventListener("keydown", pressKey);
  dialog.addEventListener("close", () => finish?.());
}
