// A key, a value or a header as it stands in a row and in the details.

import { element } from "./dom.js";
import { laidOut } from "./json.js";
import { size } from "./words.js";

// What one line of a row can show on the widest screen.
const PREVIEW = 240;
// Kinds whose text is the payload itself: no tag, they are what people expect.
const USUAL = new Set(["json", "text"]);
// Marks that would turn the direction of a line, control characters and the like: shown as signs, so
// that no payload looks like another one.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/gu;
const NAMED = new Map([["\n", "↵"], ["\r", "␍"], ["\t", "⇥"], ["\0", "␀"]]);

export const visible = (text) =>
  text.replace(HIDDEN, (sign) => NAMED.get(sign) ?? `⟨${sign.codePointAt(0).toString(16).toUpperCase()}⟩`);

// In the details lines stay lines.
const visibleLines = (text) => text.replace(HIDDEN, (sign) => (sign === "\n" || sign === "\t" ? sign : visible(sign)));

export function preview(part) {
  if (part.kind === "null") return element("span", { class: "m-none", text: "null" });
  if (part.kind === "empty") return element("span", { class: "m-none", text: "empty" });
  const line = element("span", { class: "m-line" });
  if (part.schema_id !== null && part.schema_id !== undefined) {
    line.append(element("span", { class: "tag", text: `schema ${part.schema_id}` }), " ");
  }
  if (!USUAL.has(part.kind)) line.append(element("span", { class: "tag", text: part.kind }), " ");
  if (part.is_cut) line.append(element("span", { class: "tag", text: `cut, ${size(part.bytes)}` }), " ");
  const isLong = part.text.length > PREVIEW;
  line.append(visible(isLong ? part.text.slice(0, PREVIEW) : part.text));
  if (isLong || part.is_cut) line.append("…");
  return line;
}

// `name` is what it is: a key, or a value.
export function whole(part, name = "value") {
  if (part.kind === "null") {
    return element("p", { class: "m-none", text: `null: there is no ${name}, not even an empty one` });
  }
  if (part.kind === "empty") return element("p", { class: "m-none", text: `empty: a ${name} of 0 bytes` });
  const box = element("pre", { class: "payload mono", tabindex: "0" });
  if (part.kind === "json") {
    for (const [kind, text] of laidOut(part.text)) {
      box.append(kind === "space" || kind === "sign" ? text : element("span", { class: `j-${kind}`, text: visibleLines(text) }));
    }
  } else box.textContent = visibleLines(part.text);
  return box;
}
