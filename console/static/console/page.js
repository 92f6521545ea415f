// The one module that every page loads: what renews it, the search box, keys, and charts where
// there are any.

import "./preferences.js";
import "./renewal.js";
import "./session.js";
import { openPalette } from "./palette.js";

async function drawCharts() {
  if (!document.querySelector("figure[data-chart]")) return;
  const { draw } = await import("./charts.js");
  draw();
}

drawCharts();
document.addEventListener("samsa:renewed", drawCharts);

if (document.querySelector("[data-pick]")) import("./moments.js");

function step(by) {
  const rows = [...document.querySelectorAll("tbody tr[tabindex]")];
  const here = rows.indexOf(document.activeElement);
  rows[Math.min(rows.length - 1, Math.max(0, here + by))]?.focus();
}

// The second key of a jump, and the page in the rail.
const JUMPS = { o: "", t: "topics", g: "groups", b: "brokers", c: "connectors", h: "changes" };
// A second key that comes later is one of its own.
const JUMP_MS = 1500;
let jumpsUntil = 0;

const KEYS = {
  "?": async () => (await import("./keys.js")).showKeys(),
  g: () => { jumpsUntil = Date.now() + JUMP_MS; },
  // A link only: a button, as Resume of a connector, would act at once.
  n: () => document.querySelector("main .title a.btn.main")?.click(),
  "/": () => document.querySelector("#filter")?.select(),
  j: () => step(1),
  k: () => step(-1),
};

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  const isTyping = event.target.closest?.("input, textarea, select");
  const isInBox = event.target.closest?.("dialog");
  if (event.key === "Escape" && isTyping && !isInBox) isTyping.blur();
  if (isTyping || isInBox || event.ctrlKey || event.metaKey || event.altKey) return;
  // A row leads where its first link does; a link or a button within it does what it does anyway.
  if (event.key === "Enter" && event.target.matches?.("tr[tabindex]")) {
    event.target.querySelector("a[href]")?.click();
    return;
  }
  const isJump = Date.now() < jumpsUntil && event.key in JUMPS;
  jumpsUntil = 0;
  if (isJump) document.querySelector(`.rail a:not(.mark)[href^="/${JUMPS[event.key]}"]`)?.click();
  else KEYS[event.key]?.();
  if (isJump || KEYS[event.key]) event.preventDefault();
});

// A button puts the text of the element that it names on the clipboard, and says so.
const SAID_MS = 2000;
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button[data-copy]");
  const source = button && document.getElementById(button.dataset.copy);
  if (!source) return;
  const { copyText } = await import("./messages/clipboard.js");
  button.textContent = await copyText(source.textContent, button.parentElement);
  setTimeout(() => { button.textContent = "Copy"; }, SAID_MS);
});

// One menu at a time, and none once somebody goes on elsewhere.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open], details.switch[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
