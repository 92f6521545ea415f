// Checks the config of a connector while somebody types: sends the form as it is, and shows what
// the server made of it, without moving what is being typed.

import { morph } from "./morph.js";

// Long enough for a word to be finished.
const PAUSE_MS = 400;
// An answer that takes longer comes too late.
const PATIENCE_MS = 10000;

const form = document.querySelector("#connector-form");
const sign = document.querySelector("#checking");
let timer = 0;
let running;

async function check() {
  running?.abort();
  const mine = new AbortController();
  running = mine;
  const late = setTimeout(() => mine.abort(), PATIENCE_MS);
  const body = new FormData(form);
  body.set("do", "check");
  body.set("live", "1");
  try {
    const answer = await fetch(form.action, { method: "POST", body, signal: mine.signal });
    if (!answer.ok || answer.redirected) throw new Error(`status ${answer.status}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.querySelector("#connector-form");
    if (mine !== running || !next) return;
    morph(form, next);
    const text = form.querySelector("#json");
    // A box that was typed into keeps its text; nobody is in it now, so it shows the fields.
    if (text && text !== document.activeElement) text.value = text.defaultValue;
    sign.textContent = "";
  } catch {
    if (mine === running) sign.textContent = "Not checked just now: the console does not answer. Preview checks again.";
  } finally {
    clearTimeout(late);
  }
}

form?.addEventListener("input", (event) => {
  if (event.target.id === "json") return;
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE_MS);
});
// What is sent for good needs no check beside it.
form?.addEventListener("submit", () => {
  clearTimeout(timer);
  running?.abort();
});
