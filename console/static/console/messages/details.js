// What an opened record shows: key, value and headers whole, why they are read so, and what can be
// done with it.

import { copyText } from "./clipboard.js";
import { asCurl, asJson, asKcatRead, asKcatWrite } from "./copies.js";
import { element } from "./dom.js";
import { bytesOfPart, partAddress, wholeRecord } from "./fetched.js";
import { dump } from "./hex.js";
import { visible, whole } from "./part.js";
import { number, size } from "./words.js";

// Bytes that a view in hexadecimal digits shows, five characters each; the rest is downloaded.
const MAX_DUMP = 64 * 1024;
const COPIES = [
  ["kcat: read it", "The command that reads this record", asKcatRead],
  ["kcat: write it", "The command that writes the same record again", asKcatWrite],
  ["curl: write it", "For a proxy of Kafka's REST API, version 3; REST_URL says where it is", asCurl],
  ["JSON", "Topic, place, time, key, value and headers", asJson],
];

// `site` is {place, bootstrap, clock, mayExport, produce, link}: the page's own facts, and addresses
// made of them.
export function details(site, frame) {
  const parts = [
    section(site, frame, "key", "Key", frame.key),
    section(site, frame, "value", "Value", frame.value),
    ...headers(site, frame),
  ];
  return element("div", { class: "details" }, facts(site, frame), ...parts, actions(site, frame));
}

function facts(site, frame) {
  const when = site.clock.shown(frame.timestamp_ms);
  const kinds = { create: "set by the producer", append: "set by the broker" };
  const rows = [
    ["Partition", String(frame.partition)],
    ["Offset", number(frame.offset)],
    ["Time", `${when.text}${kinds[frame.timestamp_type] ? `, ${kinds[frame.timestamp_type]}` : ""}`, when.title],
    ["Size", `${size(frame.size)}${frame.size >= 1024 ? ` (${number(frame.size)} bytes)` : ""}`],
  ];
  if (frame.is_transactional !== undefined && frame.is_transactional !== null) {
    rows.push(["Transaction", frame.is_transactional ? "part of one" : "none"]);
  }
  const cells = rows.map(([name, text, title]) =>
    element("div", {}, element("dt", { text: name }), element("dd", { text, title })),
  );
  return element("div", { class: "facts" }, element("dl", {}, ...cells));
}

function section(site, frame, name, title, part) {
  const head = element("header", {}, element("h3", { text: title }), kindOf(part));
  const body = element("div", { class: "body" }, whole(part, name));
  const made = element("section", { class: "part" }, head, body);
  if (part.bytes > 0) head.append(...views(site, frame, name, part, body));
  if (part.note) made.append(element("p", { class: "faint note", text: part.note }));
  if (part.is_cut) {
    const [shown, all] = [size(new TextEncoder().encode(part.text).length), size(part.bytes)];
    made.append(element("p", { class: "note" }, element("span", { class: "st warn", text: "Cut" }), ` ${shown} of text are shown, of ${all}. `, download(site, frame, name, `Download all ${all}`)));
  }
  return made;
}

function kindOf(part) {
  const words = [part.kind];
  if (part.schema_id !== null && part.schema_id !== undefined) words.push(`schema ${part.schema_id}`);
  if (part.bytes > 0) words.push(size(part.bytes));
  return element("span", { class: "faint", text: words.join(" · ") });
}

// Buttons for the payload as it is written, laid out, and as bytes.
function views(site, frame, name, part, body) {
  const shown = {
    [part.kind === "json" ? "Laid out" : "Text"]: () => whole(part),
    Bytes: () => bytesView(site, frame, name, part),
  };
  if (part.kind === "json") shown["As written"] = () => element("pre", { class: "payload mono", tabindex: "0", text: part.text });
  const buttons = Object.keys(shown).map((title, at) => element("button", { type: "button", class: "chip", "aria-pressed": String(at === 0), text: title }));
  for (const button of buttons) {
    button.addEventListener("click", async () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      body.replaceChildren(await shown[button.textContent]());
    });
  }
  return [element("span", { class: "views" }, ...buttons), download(site, frame, name, "Download")];
}

// What leaves as a file needs the right to export.
function download(site, frame, name, text) {
  if (!site.mayExport) return "";
  return element("a", { href: partAddress(site.place, frame.partition, frame.offset, name), download: true, text });
}

async function bytesView(site, frame, name, part) {
  try {
    const bytes = await bytesOfPart(site.place, frame, name, part);
    const box = element("pre", { class: "payload mono", tabindex: "0", text: dump(bytes.subarray(0, MAX_DUMP)) });
    if (bytes.length <= MAX_DUMP) return box;
    return element("div", {}, box, element("p", { class: "faint", text: `The first ${size(MAX_DUMP)} of ${size(bytes.length)}.` }));
  } catch (error) {
    return problem(error.message);
  }
}

const problem = (text) => element("p", { class: "notice bad", role: "alert" }, element("span", { class: "st bad", text: "Failed" }), ` ${text}`);

function headers(site, frame) {
  if (!frame.headers.length) return [];
  const rows = frame.headers.map((header) =>
    element("tr", {}, element("th", { scope: "row", class: "mono", text: visible(header.name) }), element("td", {}, whole(header.value)), element("td", {}, kindOf(header.value))),
  );
  const made = element("section", { class: "part" }, element("header", {}, element("h3", { text: "Headers" }), element("span", { class: "faint", text: number(frame.headers.length) })), element("table", { class: "headers" }, element("tbody", {}, ...rows)));
  if (frame.more_headers) made.append(element("p", { class: "faint note", text: `${number(frame.more_headers)} more are not shown. Export the record to have all.` }));
  return [made];
}

function actions(site, frame) {
  const said = element("span", { class: "faint", role: "status" });
  const made = element("div", { class: "actions" });
  made.append(element("span", { class: "faint", text: "Copy as" }));
  for (const [title, about, written] of COPIES) {
    const button = element("button", { type: "button", class: "btn small", title: about, text: title });
    button.addEventListener("click", async () => {
      said.textContent = "…";
      try {
        said.textContent = await copyText(written(await wholeRecord(site.place, site.bootstrap, frame)), made);
      } catch (error) {
        said.textContent = error.message;
      }
    });
    made.append(button);
  }
  made.append(said, element("span", { class: "gone" }), element("a", { class: "btn small", href: site.link(frame), text: "Link to this record" }));
  if (site.produce) made.append(element("a", { class: "btn small", href: site.produce(frame), text: "Produce again" }));
  return made;
}
