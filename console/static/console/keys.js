// Lists the keys of the console, for the key "?".

import { element } from "./element.js";

const KEYS = [
  ["Ctrl K", "Search, and do: create topic, tail orders, restart broker 2"],
  ["/", "Filter the list"],
  ["j  k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["n", "Main action of the page, as Create topic"],
  ["g o", "Overview"],
  ["g t", "Topics"],
  ["g g", "Groups"],
  ["g b", "Brokers"],
  ["g c", "Connectors"],
  ["g h", "Changes"],
  ["Esc", "Leave a field, or close a box"],
  ["?", "This list"],
];

export function showKeys() {
  if (document.querySelector("dialog.keys-box")) return;
  const rows = KEYS.map(([keys, does]) =>
    element("div", {}, element("dt", {}, element("kbd", {}, keys)), element("dd", {}, does)),
  );
  const close = element("button", { class: "btn" }, "Close");
  const box = element(
    "dialog",
    { class: "keys-box", "aria-label": "Keys" },
    element("h2", {}, "Keys"),
    element("dl", {}, ...rows),
    element("form", { method: "dialog" }, close),
  );
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}
