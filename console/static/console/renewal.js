// Renews a page when the stream of its tab says that something changed, and says so when it cannot.
// The server makes every page whole: without this script all of it works, but it does not renew.

import { tabStream } from "./stream.js";

// An answer that takes longer comes too late.
const PATIENCE_MS = 4000;
// Changes within so long are shown together.
const TOGETHER_MS = 300;
// When a renewal is tried again that failed, or that would have disturbed somebody.
const AGAIN_MS = 3000;
// Two beats of the stream and some: a page that has heard nothing for so long may be wrong.
const STALE_MS = 35000;

const main = () => document.querySelector("main[data-page]");
let heardAt = Date.now();
let isWanted = false;
let isRenewing = false;
let soon = 0;
// The newest value of the cluster; undefined until the stream has told one.
let seen;
let isEnded = false;

function mark(kind, word) {
  const sign = document.querySelector("#live");
  if (!sign || sign.textContent === word) return;
  sign.className = `st ${kind}`;
  sign.textContent = word;
}

// Someone is typing or has marked text: replacing it would be rude.
function isBusy() {
  const focused = document.activeElement;
  return (focused && main()?.contains(focused)) || !getSelection()?.isCollapsed;
}

function want() {
  isWanted = true;
  clearTimeout(soon);
  soon = setTimeout(renew, TOGETHER_MS);
}

async function renew() {
  if (!isWanted || isRenewing || isEnded || document.hidden || !main()) return;
  if (isBusy()) {
    mark("stale", "Changed; paused while you are in the page");
    return;
  }
  isRenewing = true;
  isWanted = false;
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
    show(new DOMParser().parseFromString(await answer.text(), "text/html"), answer.status);
  } catch {
    isWanted = true;
  } finally {
    isRenewing = false;
  }
}

function show(page, status) {
  const [next, sign] = [page.querySelector("main[data-page]"), page.querySelector("#live")];
  if (!next || !sign) throw new Error(`the server answered ${status}`);
  // A page that failed has no stream; the next one brings its own.
  if (page.body.hasAttribute("sse-connect") && !document.body.hasAttribute("sse-connect")) {
    location.reload();
    return;
  }
  if (isBusy()) {
    isWanted = true;
    return;
  }
  // Nothing moves unless a value changed.
  if (next.innerHTML !== main().innerHTML) {
    main().replaceWith(document.adoptNode(next));
    htmx.process(main());
  } else main().className = next.className;
  for (const part of [".rail footer", ".rail .count"]) {
    const [now, then] = [page.querySelector(part), document.querySelector(part)];
    if (now && then) then.innerHTML = now.innerHTML;
  }
  heardAt = Date.now();
  if (sign.classList.contains("ok")) mark("ok", "Live");
  else mark([...sign.classList].find((name) => name !== "st"), sign.textContent);
}

function signedOut() {
  isEnded = true;
  mark("warn", "Signed out: reload");
}

// The value says what is known without asking: numbers go into the page at once.
function heard(data) {
  const value = JSON.parse(data);
  for (const element of document.querySelectorAll("[data-number]")) {
    const number = value[element.dataset.number];
    if (number !== undefined) element.textContent = number.toLocaleString("en");
  }
  const isFirst = seen === undefined;
  const isShown = isFirst ? value.version === Number(main()?.dataset.version) : data === seen;
  seen = data;
  if (!isShown) want();
  else if (document.querySelector("#live.ok")) mark("ok", "Live");
}

tabStream.then((stream) => {
  const noted = (act) => (event) => {
    heardAt = Date.now();
    act(event);
  };
  stream.addEventListener("live", noted(() => {}));
  stream.addEventListener("beat", noted(() => {}));
  stream.addEventListener("cluster", noted((event) => heard(event.data)));
  stream.addEventListener("end", noted((event) => {
    if (event.data !== "signed out") return;
    stream.close();
    signedOut();
  }));
  // The server refuses a stream to whoever is not signed in any more: the page finds out.
  stream.addEventListener("lost", () => {
    isWanted = true;
  });
});

setInterval(() => {
  if (document.hidden || isEnded || !main()) return;
  if (!document.body.hasAttribute("sse-connect")) isWanted = true;
  const age = Date.now() - heardAt;
  if (age >= STALE_MS) {
    mark("stale", `Stale for ${Math.round(age / 1000)} s: no answer`);
    main().classList.add("old");
  }
  renew();
}, AGAIN_MS);
