// The rows of the page: added some at a time between two pictures of the screen, and bounded.

import { element } from "./dom.js";
import { preview } from "./part.js";
import { counted, number, size } from "./words.js";

// What a browser shows and scrolls without getting slow; older rows go first.
export const MAX_ROWS = 2000;
// Rows that wait to be shown; with so many the stream is not read on. As many as one page can ask for.
export const MAX_WAITING = 1000;
// Rows made between two pictures: laying all of them out costs the same for one new row as for many.
const PER_FRAME = 250;
const COLUMNS = 7;
// Closer to the end than this, the reader follows it.
const NEAR_END = 40;

export class Table {
  #body;
  #box;
  #clock;
  #open;
  #waiting = [];
  #room = null;
  #isHeld = false;
  #isFollowing;
  #opensFirst;
  #drawing = 0;
  #dropped = 0;
  #counts;
  shown = 0;
  ontold = () => {};

  // `open` makes the details of a record; `isFollowing` keeps the end in sight, as a tail does;
  // `opensFirst` is for a link to one record.
  constructor(table, { clock, open, isFollowing, opensFirst }) {
    this.#opensFirst = opensFirst;
    this.#body = table.tBodies[0];
    this.#box = table.parentElement;
    this.#clock = clock;
    this.#open = open;
    this.#isFollowing = isFollowing;
    this.#body.addEventListener("click", (event) => {
      // Someone who marks text does not mean to open or close anything.
      if (event.target.closest("a, .detail") || !getSelection().isCollapsed) return;
      const row = event.target.closest("tr.record");
      if (row) this.toggle(row);
    });
  }

  get waiting() {
    return this.#waiting.length;
  }

  get isFull() {
    return this.#waiting.length >= MAX_WAITING;
  }

  get records() {
    return this.shown + this.#waiting.filter((frame) => frame.type === "record").length;
  }

  add(frames) {
    this.#waiting.push(...frames);
    this.#draw();
  }

  // Resolves once there is room for more.
  room() {
    if (!this.isFull) return Promise.resolve();
    return new Promise((resolve) => {
      this.#room = resolve;
    });
  }

  hold(isHeld) {
    this.#isHeld = isHeld;
    if (!isHeld) this.#draw();
    this.ontold();
  }

  // Lets go of whoever waits for room: nothing will be shown any more.
  release() {
    this.#room?.();
    this.#room = null;
  }

  clear() {
    this.#waiting = [];
    this.#dropped = 0;
    this.shown = 0;
    this.#body.replaceChildren();
    this.release();
  }

  toggle(row) {
    const isOpen = row.classList.toggle("open") === false;
    row.querySelector("button").setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) row.nextElementSibling.remove();
    else {
      const cell = element("td", { colspan: String(COLUMNS) }, this.#open(row.frame));
      row.after(element("tr", { class: "detail" }, cell));
    }
  }

  closeNear(node) {
    const row = node.closest?.("tr.record, tr.detail");
    const record = row?.classList.contains("detail") ? row.previousElementSibling : row;
    if (!record?.classList.contains("open")) return false;
    this.toggle(record);
    record.focus();
    return true;
  }

  #draw() {
    if (this.#drawing || this.#isHeld || !this.#waiting.length) return;
    this.#drawing = requestAnimationFrame(() => {
      this.#drawing = 0;
      if (!this.#isHeld) this.#show(this.#waiting.splice(0, PER_FRAME));
      if (!this.isFull) this.release();
      this.ontold();
      this.#draw();
    });
  }

  #show(frames) {
    const isAtEnd = this.#box.scrollHeight - this.#box.scrollTop - this.#box.clientHeight < NEAR_END;
    const rows = frames.map((frame) => (frame.type === "gap" ? gapRow(frame) : this.#recordRow(frame)));
    this.#body.append(...rows);
    this.shown += frames.filter((frame) => frame.type === "record").length;
    this.#drop();
    const first = this.#opensFirst && this.#body.querySelector("tr.record");
    if (first) {
      this.#opensFirst = false;
      this.toggle(first);
    }
    if (this.#isFollowing && isAtEnd) this.#box.scrollTop = this.#box.scrollHeight;
  }

  #drop() {
    const rows = this.#body.querySelectorAll("tr.record, tr.gap");
    const surplus = rows.length - MAX_ROWS;
    if (surplus <= 0) return;
    for (const row of [...rows].slice(0, surplus)) {
      if (row.nextElementSibling?.classList.contains("detail")) row.nextElementSibling.remove();
      row.remove();
    }
    this.#dropped += surplus;
    this.#counts ??= element("td", { colspan: String(COLUMNS) });
    this.#counts.textContent = `${counted(this.#dropped, "earlier row")} dropped: a page keeps ${number(MAX_ROWS)}. Read from an offset or a time to see them.`;
    if (!this.#counts.isConnected) this.#body.prepend(element("tr", { class: "dropped" }, this.#counts));
  }

  #recordRow(frame) {
    const when = this.#clock.shown(frame.timestamp_ms);
    const time = element("time", { text: when.text, title: when.title, datetime: when.iso || false });
    const headers = frame.headers.length + (frame.more_headers ?? 0);
    const opener = element("button", { type: "button", class: "opener", "aria-expanded": "false", text: number(frame.offset) });
    const row = element(
      "tr",
      { class: "record", tabindex: "-1" },
      element("td", { class: "num mono", text: String(frame.partition) }),
      element("td", { class: "num mono", title: frame.offset }, opener),
      element("td", { class: "mono" }, time),
      element("td", { class: "mono" }, preview(frame.key)),
      element("td", { class: "mono" }, preview(frame.value)),
      element("td", { class: "num mono", text: headers ? number(headers) : "" }),
      element("td", { class: "num mono", text: size(frame.size) }),
    );
    row.frame = frame;
    return row;
  }
}

function gapRow(frame) {
  const many = frame.records ? `${counted(frame.records, "record")}, ` : "";
  const text = `Partition ${frame.partition}: ${many}offsets ${number(frame.from)} up to ${number(frame.to)} are missing: ${frame.reason}`;
  const sign = element("span", { class: "st warn", text: "Gap" });
  return element("tr", { class: "gap", tabindex: "-1" }, element("td", { colspan: String(COLUMNS) }, sign, ` ${text}`));
}
