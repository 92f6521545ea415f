// Keeps a page fresh and says so when it is not; moves through rows by key.
// The server makes every page whole: without this script all of it works, but it does not renew.

const EVERY_MS = 5000;
// An answer that takes longer comes too late: the next one is asked for by then.
const PATIENCE_MS = 4000;
// A page that could not be renewed for so long is no longer shown as if it were true.
const STALE_MS = 15000;

const main = () => document.querySelector("main[data-page]");
const live = () => document.querySelector("#live");
let freshAt = Date.now();

function mark(kind, word) {
  const sign = live();
  if (sign && sign.textContent !== word) {
    sign.className = `st ${kind}`;
    sign.textContent = word;
  }
}

// Someone is typing or has marked text: replacing it would be rude.
function isBusy() {
  const focused = document.activeElement;
  return (focused && main()?.contains(focused)) || !getSelection()?.isCollapsed;
}

async function renew() {
  if (document.hidden || !main()) return;
  try {
    const answer = await fetch(location.href, {
      credentials: "same-origin",
      // Nobody has to be there for this, so it must not keep a session from ending.
      headers: { "Samsa-Poll": "1" },
      redirect: "manual",
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (answer.type === "opaqueredirect") {
      mark("warn", "Signed out: reload");
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const [next, sign] = [page.querySelector("main[data-page]"), page.querySelector("#live")];
    if (!next || !sign) throw new Error(`the server answered ${answer.status}`);
    if (isBusy()) {
      mark("stale", "Paused while you are in the page");
      return;
    }
    // Nothing moves unless a value changed.
    if (next.innerHTML !== main().innerHTML) main().replaceWith(document.adoptNode(next));
    else main().className = next.className;
    const footer = page.querySelector(".rail footer");
    if (footer) document.querySelector(".rail footer").innerHTML = footer.innerHTML;
    freshAt = Date.now();
    if (sign.classList.contains("ok")) mark("ok", "Live");
    else mark([...sign.classList].find((name) => name !== "st"), sign.textContent);
  } catch {
    tellAge();
  }
}

function tellAge() {
  const age = Date.now() - freshAt;
  if (age < STALE_MS) return;
  mark("stale", `Stale for ${Math.round(age / 1000)} s: no answer`);
  main().classList.add("old");
}

function step(by) {
  const rows = [...document.querySelectorAll("tbody tr[tabindex]")];
  const here = rows.indexOf(document.activeElement);
  rows[Math.min(rows.length - 1, Math.max(0, here + by))]?.focus();
}

const KEYS = {
  "/": () => document.querySelector("#filter")?.select(),
  j: () => step(1),
  k: () => step(-1),
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select");
  if (event.key === "Escape" && isTyping) isTyping.blur();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

setInterval(renew, EVERY_MS);
document.addEventListener("visibilitychange", renew);
