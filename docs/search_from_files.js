// Lets the search work when pages are opened as files. Browsers start no workers from file://, so
// the theme's worker runs in a hidden frame instead. The theme looks for this class by its name.
window.IFrameWorker = class IFrameWorker extends EventTarget {
  #waiting = [];

  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.inside = frame.contentWindow;
    // What the worker sends, and the scripts that it asks for.
    this.inside.postMessage = (data) => {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    };
    this.inside.importScripts = async (...scripts) => {
      for (const script of scripts) await this.#load(script);
    };
    this.#load(url).then(() => {
      const waiting = this.#waiting;
      this.#waiting = null;
      waiting.forEach((data) => this.postMessage(data));
    });
  }

  #load(url) {
    return new Promise((done, failed) => {
      const script = this.inside.document.createElement("script");
      script.src = new URL(url, location);
      script.onload = done;
      script.onerror = failed;
      this.inside.document.body.append(script);
    });
  }

  postMessage(data) {
    if (this.#waiting) this.#waiting.push(data);
    else this.inside.dispatchEvent(new MessageEvent("message", { data }));
  }

  terminate() {
    this.inside.frameElement.remove();
  }
};
if (location.protocol === "file:") window.Worker = window.IFrameWorker;
