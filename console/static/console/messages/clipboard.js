// Puts a text on the clipboard. Browsers allow that on https and on this machine only; elsewhere the
// text is marked in a box, for the keys that copy.

import { element } from "./dom.js";

// Returns the words that say what happened; `place` is where the box goes, if one is needed.
export async function copyText(text, place) {
  try {
    await navigator.clipboard.writeText(text);
    return "Copied";
  } catch {
    // No right, no https, or no focus.
  }
  const box = element("textarea", { class: "copybox mono", readonly: true, rows: "4", "aria-label": "The text to copy" });
  box.value = text;
  place.querySelector("textarea.copybox")?.remove();
  place.append(box);
  box.focus();
  box.select();
  if (!document.execCommand?.("copy")) return "Press Ctrl-C to copy";
  box.remove();
  return "Copied";
}
