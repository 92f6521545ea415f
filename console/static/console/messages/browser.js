// The page of a topic's messages: asks the question of the form, and shows what the stream answers.

import { details } from "./details.js";
import { element } from "./dom.js";
import { Progress } from "./progress.js";
import { Positions } from "./positions.js";
import { Table } from "./table.js";
import { Failure, Run } from "./run.js";
import { Clock, counted, number, sentence } from "./words.js";

const VERDICTS = {
  complete: ["ok", "Complete"],
  limit: ["ok", "Read"],
  stopped: ["warn", "Stopped"],
  failed: ["bad", "Failed"],
};
// What to do about a failure: its word, and whether asking the same again can help.
const FAILURES = {
  question: ["Refused", false],
  "signed out": ["Signed out", false],
  forbidden: ["Not allowed", false],
  busy: ["Busy", true],
  network: ["No answer", true],
  broken: ["Broken off", true],
  failed: ["Failed", true],
};

const page = document.querySelector("#messages");
const part = (name) => document.querySelector(`#${name}`);
const { address, query, cluster, topic, bootstrap, zone, mode, produce, own } = page.dataset;
const asked = new URLSearchParams(query);
const isTail = mode === "tail";
const clock = new Clock(zone);
const progress = new Progress(part("reaches"), part("sum"), {
  isBackwards: mode === "newest",
  isFiltered: asked.has("filter"),
  isTail,
});
const site = {
  place: { cluster, topic },
  bootstrap,
  clock,
  mayExport: "mayExport" in page.dataset,
  link: (frame) => {
    const one = { cluster, mode: "offset", partitions: String(frame.partition), from: frame.offset, limit: "1" };
    return `${own}?${new URLSearchParams(one)}`;
  },
  produce: produce && ((frame) => `${produce}?${new URLSearchParams({ cluster, again: `${frame.partition}:${frame.offset}` })}`),
};
const table = new Table(part("records"), { clock, open: (frame) => details(site, frame), isFollowing: isTail, opensFirst: asked.get("limit") === "1" });
const positions = new Positions();
let run = null;
let isRunning = false;
let isHeld = false;
// A tail whose stream was closed because it is held and as much waits as may: it goes on where it was.
let isSuspended = false;
// Where the next page begins, as the server says it.
let following = null;

// `next` holds fields of the question that differ for the next page; without it the first is asked.
function start(next = null) {
  run?.stop();
  isSuspended = false;
  if (!next) {
    table.clear();
    positions.clear();
  }
  const mine = (run = new Run(`${address}?${asking(next)}`));
  part("problem").replaceChildren();
  part("verdict").replaceChildren();
  part("filter-problem").replaceChildren();
  part("filter").removeAttribute("aria-invalid");
  part("nothing").hidden = true;
  show({ runs: true });
  const outcome = {};
  mine
    .frames((frames) => taken(mine, frames, outcome))
    .then(() => ended(mine, outcome))
    .catch((error) => failed(mine, error));
}

function asking(next) {
  const fields = new URLSearchParams(asked);
  for (const [name, value] of Object.entries(next ?? {})) fields.set(name, value);
  return fields;
}

async function taken(mine, frames, outcome) {
  if (mine !== run) return;
  const rows = [];
  for (const frame of frames) {
    if (frame.type === "record" || frame.type === "gap") rows.push(frame);
    else if (frame.type === "start") progress.begin(frame.partitions);
    else if (frame.type === "progress") progress.show(frame);
    else if (frame.type === "done") outcome.done = frame;
    else if (frame.type === "error") complain(frame);
  }
  if (isTail) frames.forEach((frame) => positions.take(frame));
  if (rows.length) table.add(rows);
  count();
  if (isResting() && table.isFull) suspend();
  else await table.room();
}

// The server takes a browser that reads nothing for one that is gone, so a long pause closes the
// stream; what comes meanwhile waits at the brokers.
function suspend() {
  isSuspended = true;
  run.stop();
  table.release();
  count();
}

const goOn = () => ({ mode: "tail", cursor: positions.cursor() });

function ended(mine, { done }) {
  if (mine !== run || mine.isStopped) return;
  show({ runs: false, next: isTail ? null : done?.next });
  if (!done) return;
  const [kind, word] = VERDICTS[done.verdict] ?? VERDICTS.failed;
  // The word stands before the sentence already.
  say(kind, word, sentence(done.sentence.replace(/^(?:complete|failed|stopped):? /, "")));
  part("retry").hidden = done.verdict === "complete" || done.verdict === "limit";
  if (!table.records && !part("problem").childElementCount) empty(done);
}

function failed(mine, error) {
  if (mine !== run) return;
  const [word, canRetry] = FAILURES[error instanceof Failure ? error.kind : "failed"] ?? FAILURES.failed;
  const rows = table.records ? ` ${counted(table.records, "record")} came before.` : "";
  const isInFilter = error.kind === "question" && error.position !== null && error.position !== undefined;
  show({ runs: false });
  if (isInFilter) pointAt(error);
  if (isInFilter) say("bad", word, "The filter cannot be read: see what is marked in it.");
  else say("bad", word, `${sentence(error.message)} ${sentence(error.nextStep)}${rows}`);
  if (error.kind === "signed out") {
    const back = encodeURIComponent(location.pathname + location.search);
    part("verdict").append(" ", element("a", { href: `/login?next=${back}`, text: "Sign in" }));
  }
  part("retry").hidden = !canRetry;
}

function stop() {
  if (!isRunning) return;
  isSuspended = false;
  run.stop();
  table.release();
  show({ runs: false });
  part("retry").hidden = false;
  say("warn", "Stopped", `You stopped it${progress.stopped()}. ${counted(table.records, "record")} shown.`);
}

function say(kind, word, sentence) {
  part("verdict").replaceChildren(element("span", { class: `st ${kind}`, text: word }), ` ${sentence}`);
}

function show({ runs, next = null }) {
  isRunning = runs;
  page.setAttribute("aria-busy", String(isRunning));
  part("stop").hidden = !isRunning;
  part("hold").hidden = !isRunning || !isTail;
  part("retry").hidden = true;
  part("more").hidden = isRunning || !next;
  following = next;
  count();
}

// One partition that failed does not end the others, so it is said and stays.
function complain(frame) {
  const where = frame.partition === null || frame.partition === undefined ? "" : `Partition ${frame.partition}: `;
  const sign = element("span", { class: "st bad", text: "Failed" });
  part("problem").append(element("p", { class: "notice bad" }, sign, ` ${sentence(where + frame.message)} ${sentence(frame.next_step)}`));
}

function pointAt(error) {
  const field = part("filter");
  const at = Math.min(error.position, field.value.length);
  field.setAttribute("aria-invalid", "true");
  part("filter-problem").replaceChildren(
    element("pre", { class: "mono" }, field.value.slice(0, at), element("mark", { text: field.value.slice(at, at + 1) || " " }), field.value.slice(at + 1)),
    element("p", {}, element("span", { class: "st bad", text: `At character ${at + 1}` }), ` ${sentence(error.message)} ${sentence(error.nextStep)}`),
  );
  field.focus();
  field.setSelectionRange(at, at + 1);
}

function empty(done) {
  part("nothing").hidden = false;
  part("nothing-why").textContent = sentence(done.sentence);
}

// What goes on, without a voice: a reader's software must not be told four times a second.
function count() {
  const beyond = isSuspended ? ", more held back at the broker" : "";
  let words = "";
  if (isRunning && isResting()) words = `Paused: ${number(table.waiting)} waiting${beyond}`;
  else if (isRunning) words = table.records ? `${counted(table.records, "record")} so far` : isTail ? "Waiting for new records…" : "Reading…";
  part("counts").textContent = words;
}

function hold(wanted) {
  isHeld = wanted;
  part("hold").setAttribute("aria-pressed", String(isHeld));
  part("hold").textContent = isHeld ? "Resume" : "Hold";
  rest();
}

// A tab in the background shows nothing, so a tail waits for it as for somebody who holds it.
const isResting = () => isTail && (isHeld || document.hidden);

function rest() {
  table.hold(isResting());
  if (!isRunning) return;
  if (isResting() && table.isFull && !isSuspended) suspend();
  else if (!isResting() && isSuspended) start(goOn());
  count();
}

table.ontold = count;
part("stop").addEventListener("click", stop);
part("hold").addEventListener("click", () => hold(!isHeld));
part("retry").addEventListener("click", () => start(isTail && positions.cursor() ? goOn() : null));
part("more").addEventListener("click", () => start(following));
document.addEventListener("visibilitychange", rest);
// A page that is kept for the back button must not hold a stream.
addEventListener("pagehide", () => run?.stop());
addEventListener("pageshow", (event) => {
  if (event.persisted) start();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
  if (event.key === "Enter" && event.target.matches("tr.record")) table.toggle(event.target);
  else if (event.key === "Escape" && table.closeNear(event.target)) event.preventDefault();
});

// Only the places that a mode has are asked for.
const chosen = part("mode");
const fit = () => {
  for (const box of document.querySelectorAll("[data-for]")) {
    const fits = box.dataset.for.split(" ").includes(chosen.value);
    box.hidden = !fits;
    if (box.matches("fieldset")) box.disabled = !fits;
    else for (const field of box.querySelectorAll("input")) field.disabled = !fits;
  }
};
chosen.addEventListener("change", fit);
// Who types a moment looks for what was written then, and not for the newest records since.
const [since, until] = [part("since"), part("until")];
since.addEventListener("input", () => {
  if (chosen.value === "newest" && !since.defaultValue && !until.value) chosen.value = "oldest";
}, { once: true });
fit();
part("browse").hidden = false;
start();
