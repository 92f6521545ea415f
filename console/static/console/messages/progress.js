// How far each partition has been looked at, as bars with numbers beside them.

import { element } from "./dom.js";
import { counted, number, share, size } from "./words.js";

// More bars than this help nobody; the sum says the rest.
const MAX_BARS = 24;
// The rate of a tail is that of its last seconds: it may have waited for hours before.
const RATE_MS = 5000;

export class Progress {
  #box;
  #sum;
  #spans = new Map();
  #rows = new Map();
  #told = null;
  #isBackwards;
  #isFiltered;
  #isTail;
  // [milliseconds, records] of the last frames, the oldest first.
  #recent = [];

  // With the newest first, the end of a partition comes first.
  constructor(box, sum, { isBackwards, isFiltered, isTail }) {
    this.#isBackwards = isBackwards;
    this.#isFiltered = isFiltered;
    this.#isTail = isTail;
    this.#box = box;
    this.#sum = sum;
  }

  begin(partitions) {
    this.#spans = new Map(partitions.map((span) => [String(span.partition), span]));
    this.#rows.clear();
    this.#told = null;
    this.#recent = [[0, 0]];
    this.#box.replaceChildren();
    for (const span of partitions.slice(0, MAX_BARS)) this.#add(span);
    const more = partitions.length - MAX_BARS;
    if (more > 0) this.#box.append(element("p", { class: "faint", text: `and ${counted(more, "partition")} more` }));
  }

  show(frame) {
    this.#told = frame;
    for (const [partition, at, , records, bytes] of frame.partitions) {
      const span = this.#spans.get(String(partition));
      const row = this.#rows.get(String(partition));
      if (!span || !row) continue;
      span.at = at;
      const [from, to] = this.#isBackwards ? [span.to, span.from] : [span.from, span.to];
      // A search from the end stands at its beginning as long as it has found nothing out.
      const hasBegun = !this.#isBackwards || at !== to || records > 0;
      // Records that were looked at beyond the place that all before is known of.
      row.bar.value = Math.max(hasBegun ? share(from, at, to) : 0, share("0", records, stretch(span)));
      const waits = frame.waiting?.[partition];
      row.words.textContent = waits ? `waits: ${waits}` : `${counted(records, "record")}, ${size(bytes)}`;
    }
    const rate = this.#rate(frame);
    const words = rate === null ? [] : [`${number(rate)}/s`];
    // Without a filter, the records that were looked at are those that are shown.
    if (this.#isFiltered) words.unshift(`${counted(frame.records, "record")} looked at`);
    this.#sum.textContent = this.#isFiltered || this.#isTail ? words.join(", ") : "";
  }

  // Records each second; null as long as the time is too short to tell.
  #rate({ ms, records }) {
    const recent = this.#recent;
    recent.push([ms, records]);
    // One frame from before the time that counts is its beginning.
    while (this.#isTail && recent.length > 2 && recent[1][0] <= ms - RATE_MS) recent.shift();
    if (!this.#isTail) recent.splice(1);
    const [beganMs, before] = recent[0];
    const seconds = (ms - beganMs) / 1000;
    return seconds > 0.5 ? Math.round((records - before) / seconds) : null;
  }

  // What a search had come to, for the words where somebody stops it.
  stopped() {
    if (!this.#told || this.#told.percent === null || this.#told.percent === undefined) return "";
    const { percent, hits, records } = this.#told;
    return ` at ${percent} %: ${counted(hits, "hit")} in ${counted(records, "record")}`;
  }

  #add(span) {
    const name = `Partition ${span.partition}`;
    const bar = element("progress", { max: "1", value: "0", "aria-label": name });
    const words = element("span", { class: "faint num" });
    const title = `holds ${number(span.start)} up to ${number(span.end)}, to be read: ${number(span.from)} up to ${number(span.to)}`;
    this.#rows.set(String(span.partition), { bar, words });
    this.#box.append(element("div", { class: "reach", title: `${name} ${title}` }, element("span", { class: "mono", text: String(span.partition) }), bar, words));
  }
}

// Never 0, which would be gone before it began.
const stretch = ({ from, to }) => (BigInt(to) > BigInt(from) ? BigInt(to) - BigInt(from) : 1n);
