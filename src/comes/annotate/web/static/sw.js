// The service worker: without a network, the pages of annotators open with what was loaded before.
// The network comes first, and what it brings is kept: the two pages, their files, and pictures of
// the cards at hand; nothing of the lead, and no answers, which the page keeps itself.

const CACHE = "comes";
const PAGES = ["/", "/grid"];
const PICTURE = /^\/items\/\d+$/;
const MOST_PICTURES = 100;
const PATIENCE = 5_000; // milliseconds with the network, where something is kept
const NO_SERVER = [502, 503, 504]; // what stands before it replies

addEventListener("install", (event) => {
  // What a page sends while it is closed is lost if it comes here, where the browser allows another way.
  event.addRoutes?.({ condition: { requestMethod: "POST" }, source: "network" });
  skipWaiting();
});
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const { origin, pathname, search } = new URL(event.request.url);
  const isKept = PAGES.includes(pathname) || pathname.startsWith("/static/") || PICTURE.test(pathname);
  if (event.request.method !== "GET" || origin !== location.origin || search || !isKept) return;
  event.respondWith(respond(event, pathname));
});

// Return what the network brings, or else, or where that takes long, what was kept.
async function respond(event, path) {
  const kept = await caches.match(path);
  const coming = fetch(event.request);
  event.waitUntil(coming.then((reply) => keep(path, reply.clone()), () => {}));
  if (!kept) return coming;
  const tooLong = new Promise((resolve) => setTimeout(resolve, PATIENCE));
  const reply = await Promise.race([coming, tooLong]).catch(() => null);
  return !reply || NO_SERVER.includes(reply.status) ? kept : reply;
}

// Keep a response; nothing is kept of somebody who is no longer let in, or is now another person.
async function keep(path, reply) {
  if (reply.status === 401 || reply.status === 403) await caches.delete(CACHE);
  if (!reply.ok || reply.redirected) return;
  const cache = await caches.open(CACHE);
  if (PAGES.includes(path)) {
    const identity = await identify(reply.clone());
    if (!identity) return;
    const kept = await Promise.all(PAGES.map(async (page) => identify(await cache.match(page))));
    if (kept.some((other) => other && other !== identity)) await forget(cache);
  }
  await cache.put(path, reply);
  const pictures = (await cache.keys()).filter(({ url }) => PICTURE.test(new URL(url).pathname));
  for (const oldest of pictures.slice(0, -MOST_PICTURES)) await cache.delete(oldest);
}

// Return whose page of which project a response is; undefined where it is no such page.
async function identify(reply) {
  return /<body data-page="([^"]+)"/.exec((await reply?.text()) ?? "")?.[1];
}

// Forget the pages and pictures; our scripts and style sheets are the same for everybody.
async function forget(cache) {
  for (const kept of await cache.keys()) {
    if (!new URL(kept.url).pathname.startsWith("/static/")) await cache.delete(kept);
  }
}
