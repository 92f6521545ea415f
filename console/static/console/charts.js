// Draws every `<figure data-chart>` of a page: what it is about stands in its data attributes, and
// its samples come from /series. The caption is the server's; the same numbers are in a table.

import { element } from "./element.js";
import { colour, load, plotIn } from "./plot.js";
import { FIRST_RANGE_S, fillRanges } from "./ranges.js";
import { clock, moment, written } from "./units.js";

// As console.queries.series.
const MAX_POINTS = 2000;
// An hour of all that there is; fewer would be means, and a narrow chart would move less often.
const MIN_POINTS = 360;
// A chart is asked for again when it can have a new point, and no more often than samples are taken.
const SAMPLE_MS = 10_000;
const SLOWEST_MS = 60_000;
const PATIENCE_MS = 4000;
// Rows of the table that stands for the picture.
const TABLE_ROWS = 60;
// A window that is being resized is drawn once it rests.
const REST_MS = 120;

// By figure.
const charts = new Map();

class Chart {
  #figure;
  #metrics;
  #labels;
  #unit;
  #limit;
  #rangeS;
  #plot = null;
  #answer = null;
  #askedAt = 0;
  #isAsking = false;
  #isWanted = false;
  #resting = 0;
  #sizes;
  #values;
  #details;
  #at = element("span", { class: "at faint" });
  #note = element("p", { class: "note", role: "status" });
  #box = element("div", { class: "plot", "aria-hidden": "true" });
  #rows = element("tbody");

  constructor(figure) {
    const asked = figure.dataset;
    this.#figure = figure;
    this.#metrics = asked.metric.split(",");
    this.#labels = asked.labels ? asked.labels.split(",") : this.#metrics.map(words);
    this.#unit = asked.unit ?? "";
    this.#limit = asked.limit ? Number(asked.limit) : null;
    this.#rangeS = Number(asked.range ?? FIRST_RANGE_S);
    this.#build();
    this.#sizes = new ResizeObserver(() => {
      clearTimeout(this.#resting);
      this.#resting = setTimeout(() => this.#fit(), REST_MS);
    });
    this.#sizes.observe(this.#box);
    this.ask();
  }

  get isThere() {
    return this.#figure.isConnected;
  }

  get rangeS() {
    return this.#rangeS;
  }

  end() {
    clearTimeout(this.#resting);
    this.#sizes.disconnect();
    this.#plot?.destroy();
  }

  // Ask for samples where there can be new ones.
  askAgain({ atOnce = false } = {}) {
    const stepMs = 1000 * (this.#answer?.step_s ?? 0);
    const due = this.#askedAt + Math.min(SLOWEST_MS, Math.max(SAMPLE_MS, stepMs));
    if (atOnce || Date.now() >= due) this.ask();
  }

  setRange(seconds) {
    this.#rangeS = seconds;
    this.ask();
  }

  async ask() {
    this.#isWanted = this.#isAsking;
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#askedAt = Date.now();
    const rangeS = this.#rangeS;
    try {
      const { kind, name = "", topic = "", cluster = "" } = this.#figure.dataset;
      const asked = new URLSearchParams({
        ...{ kind, name, topic, cluster, metric: this.#metrics.join(",") },
        range: rangeS,
        points: Math.min(MAX_POINTS, Math.max(MIN_POINTS, Math.round(this.#box.clientWidth))),
      });
      const answer = await fetch(`/series?${asked}`, {
        credentials: "same-origin",
        headers: { "Samsa-Poll": "1" },
        redirect: "manual",
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      const told = await toldBy(answer);
      const UPlot = await load();
      if (rangeS === this.#rangeS) this.#show(told, UPlot);
    } catch (error) {
      this.#fail(error.name === "TimeoutError" ? "the console does not answer" : error.message);
    } finally {
      this.#isAsking = false;
    }
    // Somebody chose another range meanwhile, or the tables fell silent.
    if (this.#isWanted && this.isThere) this.ask();
  }

  // The theme has changed: the colours of a plot are fixed when it is made.
  redraw() {
    this.#plot?.destroy();
    this.#plot = null;
    if (this.#answer) load().then((UPlot) => this.#draw(UPlot));
  }

  #build() {
    const keys = this.#labels.map((label, place) => {
      const value = element("b");
      return [element("li", {}, element("i", { class: `key ${colour(place)}` }), `${label} `, value), value];
    });
    this.#values = keys.map(([, value]) => value);
    const legend = element("ul", { class: "legend" }, ...keys.map(([key]) => key));
    if (this.#limit !== null) {
      const label = this.#figure.dataset.limitLabel ?? "limit";
      const line = element("li", {}, element("i", { class: "key limit" }), `${label} `);
      line.append(element("b", {}, written(this.#limit, this.#unit)));
      legend.append(line);
    }
    const heads = ["Time", ...this.#labels].map((label, place) =>
      element("th", place ? { scope: "col", class: "num" } : { scope: "col" }, label),
    );
    const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), this.#rows);
    const region = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers" }, table);
    const details = element("details", {}, element("summary", {}, "Numbers"), region);
    details.addEventListener("toggle", () => this.#fillTable(details.open));
    this.#details = details;
    const caption = this.#figure.querySelector("figcaption") ?? this.#figure;
    caption.append(this.#at);
    if (!this.#figure.closest("[data-charts]")) {
      const ranges = element("span", { class: "ranges" });
      fillRanges(ranges, () => [this]);
      caption.append(ranges);
    }
    this.#figure.append(legend, this.#box, this.#note, details);
  }

  #show(told, UPlot) {
    this.#answer = told;
    this.#figure.classList.remove("is-old");
    const isEmpty = told.samples.every((lane) => lane.every((value) => value === null));
    let note = "";
    if (told.state !== "fresh") note = `Stale: from ${told.age_s} s ago. ${told.reason}`;
    else if (isEmpty) note = "No samples in this time: they are taken every 10 s while the collector runs.";
    this.#say(note);
    this.#figure.classList.toggle("is-old", told.state !== "fresh");
    this.#draw(UPlot);
    this.#fillTable(this.#details.open);
  }

  #draw(UPlot) {
    const { start_s, step_s, samples } = this.#answer;
    const times = samples[0].map((_value, place) => start_s + place * step_s);
    const data = [times, ...samples];
    if (this.#plot) this.#plot.setData(data);
    else if (this.#box.clientWidth) {
      this.#plot = plotIn(this.#box, {
        ...{ UPlot, count: samples.length, unit: this.#unit, limit: this.#limit, data },
        moved: (place) => this.#showValues(place),
      });
    }
    this.#showValues(this.#plot?.cursor.idx ?? null);
  }

  // What is under the cursor, or else the newest of each.
  #showValues(place) {
    if (!this.#answer) return;
    const { start_s, step_s, samples } = this.#answer;
    samples.forEach((lane, line) => {
      const value = place === null ? lane.findLast((each) => each !== null) : lane[place];
      // A gap: in words it would take another line.
      const text = value === null || value === undefined ? "–" : written(value, this.#unit);
      if (this.#values[line].textContent !== text) this.#values[line].textContent = text;
    });
    this.#at.textContent = place === null || place === undefined ? "" : clock(start_s + place * step_s);
  }

  #fillTable(isOpen) {
    if (!isOpen || !this.#answer) return;
    const { start_s, step_s, samples } = this.#answer;
    const every = Math.ceil(samples[0].length / TABLE_ROWS);
    const rows = [];
    for (let place = samples[0].length - 1; place >= 0; place -= every) {
      // A row of nothing but gaps says less than the time that is missing between two others.
      if (samples.every((lane) => lane[place] === null)) continue;
      const cells = samples.map((lane) => element("td", { class: "num" }, written(lane[place], this.#unit)));
      const head = element("th", { scope: "row" }, moment(start_s + place * step_s));
      rows.push(element("tr", {}, head, ...cells));
    }
    this.#rows.replaceChildren(...rows);
  }

  #fit() {
    if (!this.#box.clientWidth) return;
    if (this.#plot) this.#plot.setSize({ width: this.#box.clientWidth, height: this.#box.clientHeight });
    else if (this.#answer) this.redraw();
  }

  // What was drawn stays, and says that it is old.
  #fail(reason) {
    this.#figure.classList.add("is-old");
    this.#say(`Not read: ${reason}`);
  }

  #say(text) {
    if (this.#note.textContent !== text) this.#note.textContent = text;
  }
}

const words = (metric) => metric.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());

async function toldBy(answer) {
  if (answer.type === "opaqueredirect") throw new Error("you are signed out; reload the page");
  const told = await answer.json().catch(() => ({ error: `the console answered ${answer.status}` }));
  if (!answer.ok) throw new Error(told.error ?? `the console answered ${answer.status}`);
  return told;
}

// One switch for all charts within `[data-charts]`, where its place `[data-ranges]` is empty.
function fillSharedRanges() {
  for (const box of document.querySelectorAll("[data-charts] [data-ranges]:empty")) {
    const scope = box.closest("[data-charts]");
    fillRanges(box, () => [...charts].filter(([figure]) => scope.contains(figure)).map(([, chart]) => chart));
  }
}

// Draw figures that are new on the page, and let go of those that have left it.
export function draw() {
  for (const [figure, chart] of charts) {
    if (chart.isThere) continue;
    chart.end();
    charts.delete(figure);
  }
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    if (!charts.has(figure)) charts.set(figure, new Chart(figure));
  }
  fillSharedRanges();
}

function askAll(how) {
  if (document.hidden) return;
  for (const chart of charts.values()) chart.askAgain(how);
}

let state = "fresh";
document.addEventListener("samsa:live", ({ detail }) => {
  const isTurned = detail.state !== state;
  state = detail.state;
  askAll({ atOnce: isTurned });
});
document.addEventListener("visibilitychange", () => askAll());
setInterval(() => askAll(), SAMPLE_MS);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const chart of charts.values()) chart.redraw();
});
