// The one event stream of this tab. htmx's extension opens it through htmx.createEventSource and
// swaps fragments from it; our modules listen to the same one.
// It pauses while the tab is in the background, and begins again with the newest values.

// Someone who looks through tabs must not open a stream in each.
const PAUSE_AFTER_MS = 5000;
// The server says something every three seconds. A connection that is silent for longer than this is
// dead or hangs, which a browser does not notice by itself.
export const SILENT_MS = 10000;
// A browser gives up where the server refuses: too many tabs, a database that is away.
const FIRST_RETRY_MS = 5000;
const LAST_RETRY_MS = 60000;

export class TabStream extends EventTarget {
  #url;
  #source = null;
  #isClosed = false;
  #retryMs = FIRST_RETRY_MS;
  #names = new Set();
  #pausing = 0;
  #retrying = 0;
  #listening = 0;
  onopen = null;
  onerror = null;

  constructor(url) {
    super();
    this.#url = url;
    document.addEventListener("visibilitychange", () => this.#turn());
    // A page that the browser keeps for its back button must not hold a stream.
    addEventListener("pagehide", () => this.#disconnect());
    addEventListener("pageshow", () => this.#turn());
    for (const name of ["beat", "end", "cluster", "live", "health"]) this.#names.add(name);
    this.#turn();
  }

  // What htmx asks; it must not connect again by itself.
  get readyState() {
    return this.#isClosed ? EventSource.CLOSED : (this.#source?.readyState ?? EventSource.CONNECTING);
  }

  addEventListener(name, listener, options) {
    super.addEventListener(name, listener, options);
    if (this.#names.has(name)) return;
    this.#names.add(name);
    this.#source?.addEventListener(name, this.#forward);
  }

  // Begins again after `close`.
  open() {
    this.#isClosed = false;
    this.#turn();
  }

  close() {
    this.#isClosed = true;
    this.#disconnect();
  }

  #forward = (event) => {
    this.#listen();
    this.dispatchEvent(new MessageEvent(event.type, { data: event.data }));
  };

  #turn() {
    clearTimeout(this.#pausing);
    if (this.#isClosed) return;
    if (!document.hidden) this.#connect();
    else this.#pausing = setTimeout(() => this.#disconnect(), PAUSE_AFTER_MS);
  }

  // Connects again after a silence.
  #listen() {
    clearTimeout(this.#listening);
    this.#listening = setTimeout(() => {
      this.#disconnect();
      this.#turn();
    }, SILENT_MS);
  }

  #connect() {
    if (this.#source || this.#isClosed) return;
    clearTimeout(this.#retrying);
    const source = (this.#source = new EventSource(this.#url));
    this.#listen();
    for (const name of this.#names) source.addEventListener(name, this.#forward);
    source.onopen = (event) => {
      this.#retryMs = FIRST_RETRY_MS;
      this.onopen?.(event);
      this.dispatchEvent(new Event("opened"));
    };
    source.onerror = () => {
      this.dispatchEvent(new Event("lost"));
      if (source.readyState !== EventSource.CLOSED) return;
      this.#disconnect();
      this.#retrying = setTimeout(() => this.#turn(), this.#retryMs);
      this.#retryMs = Math.min(2 * this.#retryMs, LAST_RETRY_MS);
    };
  }

  #disconnect() {
    clearTimeout(this.#retrying);
    clearTimeout(this.#listening);
    this.#source?.close();
    this.#source = null;
  }
}

let opened = null;

// The stream of this tab, once htmx has found its address in the page.
export const tabStream = new Promise((resolve) => {
  opened = resolve;
});

htmx.createEventSource = (url) => {
  const stream = new TabStream(url);
  opened(stream);
  return stream;
};
