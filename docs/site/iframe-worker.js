// A page opened from disk may not start a worker: run the search in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "Search";
      document.documentElement.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.onmessage?.({ data });
      inside.importScripts = () => {};
      const script = inside.document.createElement("script");
      script.src = url;
      script.onerror = (event) => this.onerror?.(event);
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => inside.onmessage?.({ data }));
      };
      inside.document.body.append(script);
      this.frame = frame;
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.frame.contentWindow.onmessage?.({ data });
    }
    terminate() {
      this.frame.remove();
    }
  };
}
