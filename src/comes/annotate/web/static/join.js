// The page on which people say their name; a name that looks like a known one is asked about.

import { forgetOffline, post } from "./queue.js";
import { find, refusal } from "./view.js";
import { chooseLanguage, word } from "./words.js";

// Send a name, and go to the cards.
async function join(isSame) {
  const name = find("name").value.trim();
  if (!name) return;
  const reply = await post("/api/join", isSame ? { name, is_same: true } : { name });
  find("alarm").textContent = "";
  if (reply.status === 200) {
    await forgetOffline(); // of whoever was here before
    location.assign("/");
  }
  if (reply.body.known) askWhether(reply.body.known);
  else if (reply.status !== 200) find("alarm").textContent = refusal(reply);
}

// Ask whether this is the person who answered under a similar name.
function askWhether(known) {
  find("known-text").textContent = word("known", { name: known });
  find("same").textContent = word("known.same", { name: known });
  find("known").hidden = false;
  find("same").focus();
}

find("join").addEventListener("submit", (event) => {
  event.preventDefault();
  join(false);
});
find("name").addEventListener("input", () => {
  find("known").hidden = true;
});
find("same").addEventListener("click", () => join(true));
find("other").addEventListener("click", () => {
  find("known").hidden = true;
  find("name").select();
});
find("language").addEventListener("change", (event) => chooseLanguage(event.target.value));
find("start").disabled = false; // until now, the browser would have sent the form in its own way
