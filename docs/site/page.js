// The index of the search is larger than a page: fetch it when somebody touches the page.
(() => {
  let waiting = location.search ? null : [];
  const { open, send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    this.isIndex = String(url).endsWith("/search.json");
    return open.call(this, method, url, ...rest);
  };
  XMLHttpRequest.prototype.send = function (body) {
    if (this.isIndex && waiting) waiting.push(() => send.call(this, body));
    else send.call(this, body);
  };
  const start = () => {
    const requests = waiting ?? [];
    waiting = null;
    requests.forEach((request) => request());
  };
  for (const event of ["focusin", "keydown", "pointerdown"])
    addEventListener(event, start, { capture: true, once: true });
})();

// The buttons beside code are no landmarks of the page.
new MutationObserver(() => {
  document.querySelectorAll("nav.md-code__nav:not([role])").forEach((bar) => (bar.role = "none"));
}).observe(document.documentElement, { childList: true, subtree: true });
