// Warns before the session ends, keeps it while the user types, and lets the user sign in again in
// place, so that nothing on the page is lost. Without this script, the sign-in page keeps a form
// that is sent too late.

import { element } from "./element.js";
import { clock } from "./units.js";

const WARN_MS = 120_000;
// While the warning is shown: another tab may keep the session.
const LOOK_AGAIN_MS = 10_000;
// A browser's timer takes no wait above 24 days.
const MAX_WAIT_MS = 3_600_000;

const { user, sessionS } = document.body.dataset;
let endsAt = Date.now() + 1000 * Number(sessionS);
let timer = 0;
let hasTyped = false;
let bar = null;
let box = null;

function wait(ms) {
  clearTimeout(timer);
  timer = setTimeout(look, Math.min(Math.max(ms, 1000), MAX_WAIT_MS));
}

// Looks whether the session ends soon; typing counts as activity, and asking alone does not.
async function look({ isActivity = false } = {}) {
  const left = endsAt - Date.now();
  if (!isActivity && left > WARN_MS) {
    wait(left - WARN_MS);
    return;
  }
  try {
    const headers = isActivity || hasTyped ? {} : { "Samsa-Poll": "1" };
    const state = await stateOf(headers);
    if (state) accept(state);
    else await showBox();
    hasTyped = false;
  } catch {
    wait(LOOK_AGAIN_MS);
  }
}

// Returns the state of the session; null if there is none, or its password has to be changed first.
async function stateOf(headers = {}) {
  const answer = await fetch("/account/session", { headers, redirect: "manual" });
  return answer.type === "opaqueredirect" ? null : answer.json();
}

function accept(state) {
  if (state.user !== user) {
    closeBox();
    showBar(`${state.user} is signed in here now, and this page is of ${user}.`, "Reload", () => location.reload());
    return;
  }
  // A token of before another sign-in is not valid any more.
  for (const field of document.querySelectorAll("input[name=csrfmiddlewaretoken]")) {
    field.value = state.csrf;
  }
  for (const place of document.querySelectorAll("[data-csrf]")) place.dataset.csrf = state.csrf;
  const left = 1000 * state.ends_s;
  endsAt = Date.now() + left;
  if (left > WARN_MS) hideBar();
  else if (state.is_limit) {
    showBar(`Your session ends at ${clock(endsAt / 1000)}, however active you are. Then sign in again here: what is on this page stays.`);
  } else {
    showBar(`Your session ends at ${clock(endsAt / 1000)}.`, "Stay signed in", () => look({ isActivity: true }));
  }
  wait(left > WARN_MS ? left - WARN_MS : Math.min(LOOK_AGAIN_MS, left));
  if (!box) return;
  closeBox();
  document.dispatchEvent(new Event("samsa:signed-in"));
}

function showBar(text, label, act) {
  const said = bar?.querySelector("span:not(.st)");
  if (said?.textContent === text) return;
  hideBar();
  const sign = element("span", { class: "st warn" }, "Session");
  bar = element("p", { class: "notice warn session", role: "alert" }, sign, element("span", {}, text));
  if (label) {
    const button = element("button", { type: "button", class: "btn small" }, label);
    button.addEventListener("click", act);
    bar.append(button);
  }
  document.body.append(bar);
}

function hideBar() {
  bar?.remove();
  bar = null;
}

// Shows the form of the sign-in page over this page.
async function showBox(answer) {
  const sheet = answer ?? (await fetch("/login", { redirect: "manual" }));
  if (sheet.type === "opaqueredirect") {
    const state = await stateOf();
    if (state) accept(state);
    else leadToPassword();
    return;
  }
  const page = new DOMParser().parseFromString(await sheet.text(), "text/html");
  const form = page.querySelector("form.sheet");
  if (!form) {
    say(page.querySelector("main")?.textContent.trim() || `The console answers with status ${sheet.status}.`);
    return;
  }
  form.querySelector("h1").textContent = "Your session has ended";
  form.querySelector("h1").after(element("p", {}, "Sign in again: what is on this page stays."));
  const name = form.elements.username;
  [name.value, name.readOnly] = [user, true];
  const shown = document.importNode(form, true);
  shown.addEventListener("submit", signIn);
  openBox("Sign in again", shown);
  shown.elements.password.focus();
}

// A password that an administrator set is changed on a page of its own. The user returns from there.
function leadToPassword() {
  endsAt = 0;
  const words = "An administrator set your password. Change it in a new tab, then return: what is on this page stays.";
  const link = element("a", { class: "btn main", href: "/password", target: "_blank" }, "Change password");
  const title = element("h1", {}, "Change your password first");
  openBox("Change password", element("div", { class: "sheet" }, title, element("p", {}, words), link));
}

function openBox(label, sheet) {
  clearTimeout(timer);
  hideBar();
  box?.remove();
  const later = element("button", { type: "button", class: "btn" }, "Not now");
  later.addEventListener("click", closeBox);
  sheet.append(later);
  box = element("dialog", { class: "again", "aria-label": label }, sheet);
  box.addEventListener("cancel", closeBox);
  document.body.append(box);
  box.showModal();
}

function closeBox() {
  box?.remove();
  box = null;
}

async function signIn(event) {
  event.preventDefault();
  const form = event.currentTarget;
  form.querySelector("button").disabled = true;
  try {
    const body = new URLSearchParams(new FormData(form));
    await showBox(await fetch("/login", { method: "POST", body, redirect: "manual" }));
  } catch {
    say("The console does not answer. Try again in a moment.");
  } finally {
    form.querySelector("button").disabled = false;
  }
}

function say(text) {
  const place = box?.querySelector("h1 + p");
  if (place) place.textContent = text;
}

if (user) {
  document.addEventListener("input", (event) => {
    if (!event.target.closest("dialog.again")) hasTyped = true;
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) look();
  });
  document.addEventListener("samsa:signed-out", () => {
    if (!box) showBox().catch(() => wait(LOOK_AGAIN_MS));
  });
  look();
}
