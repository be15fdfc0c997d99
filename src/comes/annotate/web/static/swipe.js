// Answers by swiping the item: left for no, right for yes, up or down for cannot tell.
// What will be answered is shown while the finger moves; a short way answers nothing.

import { countHeld, isZoomed } from "./zoom.js";
import { SHAPES, find, hasMore, make, page } from "./view.js";
import { word } from "./words.js";

const FAR = 90; // pixels from which a swipe answers
const SLACK = 12; // pixels before a touch is a swipe

let begun = null; // where the touch began
let answer = null;

// The answer of a direction; null where the swipe is too short, or scrolls a long text.
function answerOf(dx, dy) {
  const isAcross = Math.abs(dx) > Math.abs(dy);
  if (Math.max(Math.abs(dx), Math.abs(dy)) < FAR) return null;
  if (!isAcross) return canScroll() ? null : "maybe";
  if (dx < 0) return "no";
  return page.dataset.yes === "0" ? "maybe" : "yes";
}

// Whether moving a finger up or down scrolls the item.
function canScroll() {
  return hasMore() || find("stage").scrollTop > 0;
}

// Show where the item is pulled, and what letting it go would answer.
function show(dx, dy) {
  const pulled = canScroll() ? [dx, 0] : [dx, dy];
  find("item").style.transform = `translate(${pulled[0]}px, ${pulled[1]}px) rotate(${dx / 40}deg)`;
  answer = answerOf(dx, dy);
  const label = find("swipe");
  label.hidden = !answer;
  if (answer) {
    label.className = `said ${answer}`;
    label.replaceChildren(make("span", {}, SHAPES[answer]), ` ${word(`answer.${answer}`)}`);
  }
}

// Put the item back.
function end() {
  begun = null;
  find("item").style.transform = "";
  find("swipe").hidden = true;
}

// Have the stage heard; `give` takes the answer.
export function listenToSwipes(give) {
  const stage = find("stage");
  stage.addEventListener("pointerdown", (event) => {
    const isOurs = event.pointerType === "touch" && page.dataset.state === "shown" && !isZoomed() && countHeld() < 2;
    begun = isOurs && !event.target.closest("button") ? { x: event.clientX, y: event.clientY } : null;
    answer = null;
  });
  stage.addEventListener("pointermove", (event) => {
    if (!begun) return;
    if (countHeld() > 1) {
      end();
      return;
    }
    const [dx, dy] = [event.clientX - begun.x, event.clientY - begun.y];
    if (Math.hypot(dx, dy) > SLACK) show(dx, dy);
  });
  stage.addEventListener("pointerup", () => {
    if (!begun) return;
    const given = answer;
    end();
    if (given) give(given);
  });
  stage.addEventListener("pointercancel", () => begun && end());
}
