// A page opened from disk may not start a worker: run the search in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "Search";
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => {
        const message = { data: structuredClone(data) };
        setTimeout(() => this.onmessage?.(message));
      };
      const script = inside.document.createElement("script");
      script.src = url;
      this.loaded = new Promise((resolve) => (script.onload = () => resolve(inside)));
      script.onerror = () => this.onerror?.(new Event("error"));
      inside.document.body.append(script);
    }
    postMessage(data) {
      this.loaded.then((inside) => inside.onmessage({ data: inside.structuredClone(data) }));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
