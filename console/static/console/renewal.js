// Renews a page when the stream of its tab says that something changed, and says so when it cannot.
// The server makes every page whole: without this script all of it works, but it does not renew.

import { morph } from "./morph.js";
import { SILENT_MS, tabStream } from "./stream.js";
import { clock } from "./units.js";

// An answer that takes longer comes too late.
const PATIENCE_MS = 4000;
// Changes within so long are shown together.
const TOGETHER_MS = 300;
// When a renewal is tried again that failed, or that would have disturbed somebody.
const AGAIN_MS = 3000;
// Numbers that move all the time are shown no more often. A page that costs the server much is
// asked for less often still, so that its reader takes no more than a twentieth of it.
const LIVE_MS = 3000;
const LIVE_COST = 20;
// How often the sign is checked against the time.
const LOOK_MS = 1000;

const main = () => document.querySelector("main[data-page]");
const isLive = () => main()?.hasAttribute("data-live") ?? false;
let heardAt = Date.now();
let renewedAt = Date.now();
let isWanted = false;
let isRenewing = false;
let soon = 0;
// When the renewal that is wanted may begin.
let dueAt = 0;
let tookMs = 0;
// The newest value of the cluster; undefined until the stream has told one.
let seen;
// What the stream told last of the collector's tables.
let tables;
let isEnded = false;
// The page is dimmed because the server is silent, and the server had not dimmed it.
let isDimmed = false;
// Changes that wait until nobody is in their way.
let waiting = 0;
// What the server said of its own reading.
let said = words(document.querySelector("#live"));

function words(sign) {
  return sign && { kind: [...sign.classList].find((name) => name !== "st"), word: sign.textContent };
}

function mark(kind, word) {
  const sign = document.querySelector("#live");
  if (!sign || sign.textContent === word) return;
  sign.className = `st ${kind}`;
  sign.textContent = word;
}

function showSign() {
  const isSilent = Date.now() - heardAt >= SILENT_MS;
  dim(isSilent);
  if (isEnded) mark("warn", "Signed out: reload");
  // Since when, and not for how long: who has the page read out would hear every second of it.
  else if (isSilent) mark("warn", `Not connected since ${clock(heardAt / 1000)}`);
  else if (isLive() && tables?.state === "stale") mark("stale", `Stale since ${clock(tables.told_s)}`);
  else if (isLive() && tables?.state === "away") mark("stale", "Collector away");
  else if (said?.kind === "ok") mark("ok", "Live");
  else if (said) mark(said.kind, said.word);
}

// Numbers of a server that is silent may be wrong.
function dim(isSilent) {
  const page = main();
  if (!page || isSilent === isDimmed || (isSilent && page.classList.contains("old"))) return;
  isDimmed = isSilent;
  page.classList.toggle("old", isSilent);
}

// Rows must not move under the pointer or the focus, nor a form while somebody fills it in.
function isBusy() {
  const page = main();
  const focused = document.activeElement;
  const isInside = focused && page?.contains(focused);
  return (
    page?.querySelector("tbody tr:hover, dialog[open]") ||
    (isInside && focused.closest("tbody, form[method=post], [contenteditable]")) ||
    (!getSelection()?.isCollapsed && page?.contains(getSelection().anchorNode))
  );
}

function showWaiting() {
  const button = document.querySelector("#updates");
  if (!button) return;
  button.hidden = waiting === 0;
  button.textContent = `${waiting} update${waiting === 1 ? "" : "s"}`;
}

function wantBy(time) {
  dueAt = isWanted ? Math.min(dueAt, time) : time;
  isWanted = true;
  clearTimeout(soon);
  soon = setTimeout(() => renew(), Math.max(0, dueAt - Date.now()));
}

const want = () => wantBy(Date.now() + TOGETHER_MS);
const wantNumbers = () => wantBy(renewedAt + Math.max(LIVE_MS, LIVE_COST * tookMs));
const wantAgain = () => wantBy(Date.now() + AGAIN_MS);

// A renewal that would disturb somebody is offered instead.
function hold() {
  waiting = Math.max(1, waiting);
  showWaiting();
  wantAgain();
}

async function renew(isForced = false) {
  if (!isWanted || isRenewing || isEnded || document.hidden || !main()) return;
  isWanted = false;
  if (!isForced && isBusy()) {
    hold();
    return;
  }
  isRenewing = true;
  const began = Date.now();
  try {
    const answer = await fetch(location.href, {
      credentials: "same-origin",
      // Nobody has to be there for this, so it must not keep a session from ending.
      headers: { "Samsa-Poll": "1" },
      redirect: "manual",
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (answer.type === "opaqueredirect") {
      signedOut();
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    tookMs = Date.now() - began;
    show(page, answer.status, isForced);
  } catch {
    wantAgain();
  } finally {
    isRenewing = false;
    renewedAt = Date.now();
    if (isWanted) wantBy(dueAt);
  }
}

function show(page, status, isForced) {
  const next = page.querySelector("main[data-page]");
  if (!next || !page.querySelector("#live")) throw new Error(`the server answered ${status}`);
  // A page that failed has no stream; the next one brings its own.
  if (page.body.hasAttribute("sse-connect") && !document.body.hasAttribute("sse-connect")) {
    location.reload();
    return;
  }
  if (!isForced && isBusy()) {
    hold();
    return;
  }
  morph(main(), next);
  isDimmed = false;
  htmx.process(main());
  for (const part of [".rail footer", ...countsOf(page)]) {
    const [now, then] = [page.querySelector(part), document.querySelector(part)];
    if (now && then) morph(then, now);
  }
  said = words(page.querySelector("#live"));
  heardAt = Date.now();
  waiting = 0;
  showWaiting();
  showSign();
  document.dispatchEvent(new Event("samsa:renewed"));
}

// Each number of the rail, by the address of its page.
function countsOf(page) {
  return [...page.querySelectorAll(".rail a[id] > .count")].map(
    (count) => `#${CSS.escape(count.parentElement.id)} > .count`,
  );
}

function signedOut() {
  isEnded = true;
  showSign();
  document.dispatchEvent(new Event("samsa:signed-out"));
}

// The value says what is known without asking: numbers go into the page at once.
function showNumbers(value) {
  for (const element of document.querySelectorAll("[data-number]")) {
    const number = value[element.dataset.number];
    if (typeof number !== "number") continue;
    element.textContent = number.toLocaleString("en");
  }
}

function heard(data) {
  const value = JSON.parse(data);
  showNumbers(value);
  const isFirst = seen === undefined;
  const isShown = isFirst ? value.version === Number(main()?.dataset.version) : data === seen;
  seen = data;
  if (!isShown) changed(want);
  showSign();
}

function heardTables(data) {
  const value = JSON.parse(data);
  const before = tables;
  tables = value;
  document.dispatchEvent(new CustomEvent("samsa:live", { detail: value }));
  showSign();
  if (!isLive()) return;
  // A page says of its tables whether they can be believed: that must not wait.
  if (before && before.state !== value.state) changed(want);
  else if (before?.step !== value.step) changed(wantNumbers);
}

function changed(wanting) {
  if (waiting) {
    waiting += 1;
    showWaiting();
  }
  wanting();
}

tabStream.then((stream) => {
  const noted = (act) => (event) => {
    heardAt = Date.now();
    act(event);
  };
  stream.addEventListener("opened", noted(showSign));
  stream.addEventListener("beat", noted(showSign));
  stream.addEventListener("cluster", noted((event) => heard(event.data)));
  stream.addEventListener("live", noted((event) => heardTables(event.data)));
  stream.addEventListener("health", noted((event) => showNumbers(JSON.parse(event.data))));
  stream.addEventListener("end", noted((event) => {
    if (event.data !== "signed out") return;
    stream.close();
    signedOut();
  }));
  // The server refuses a stream to whoever is not signed in any more: the page finds out.
  stream.addEventListener("lost", wantAgain);
  document.addEventListener("samsa:signed-in", () => stream.open());
});

document.addEventListener("samsa:signed-in", () => {
  isEnded = false;
  showSign();
  want();
});

document.querySelector("#updates")?.addEventListener("click", () => {
  isWanted = true;
  renew(true);
});

document.addEventListener("visibilitychange", () => renew());

setInterval(() => {
  if (document.hidden || isEnded || !main()) return;
  // A page that failed has no stream that would tell of the end of it.
  if (!document.body.hasAttribute("sse-connect") && !isWanted) want();
}, AGAIN_MS);

setInterval(() => {
  if (!document.hidden) showSign();
}, LOOK_MS);
