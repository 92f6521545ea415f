// One question to the server and its stream of answers: read as fast as they can be shown, held
// back while they are not wanted, and stopped at once.

import { lines } from "./lines.js";

// What went wrong with a stream, by what can be done about it.
export class Failure extends Error {
  constructor(kind, message, { nextStep = "", position = null } = {}) {
    super(message);
    this.kind = kind;
    this.nextStep = nextStep;
    this.position = position;
  }
}

const KINDS = new Map([
  [400, "question"],
  [401, "signed out"],
  [403, "forbidden"],
  [404, "question"],
  [413, "question"],
  [414, "question"],
  [422, "question"],
  [429, "busy"],
  [503, "busy"],
]);
// An answer that is no stream is a sentence or two.
const MAX_REASON = 2000;

export class Run {
  #abort = new AbortController();
  #address;
  isStopped = false;

  constructor(address) {
    this.#address = address;
  }

  // Takes frames until the stream ends; `take` gets some at a time and is waited for. Raises
  // Failure; one that was stopped ends without.
  async frames(take) {
    try {
      const answer = await this.#asked();
      let isDone = false;
      for await (const some of lines(answer.body.getReader())) {
        const frames = some.map(read);
        isDone ||= frames.some((frame) => frame.type === "done");
        await take(frames);
        if (this.isStopped) return;
      }
      if (!isDone) throw new Failure("broken", "The stream broke off: what is shown is not all.");
    } catch (error) {
      if (this.isStopped) return;
      if (error instanceof Failure) throw error;
      if (error instanceof TypeError) {
        throw new Failure("network", "The console does not answer, or the connection broke off.");
      }
      throw new Failure("broken", error.message);
    }
  }

  stop() {
    this.isStopped = true;
    this.#abort.abort();
  }

  async #asked() {
    const answer = await fetch(this.#address, {
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      signal: this.#abort.signal,
    });
    if (answer.ok) return answer;
    throw await refusal(answer);
  }
}

// A refusal is JSON with a message, a next step and perhaps a position in the filter, or one line.
async function refusal(answer) {
  const kind = KINDS.get(answer.status) ?? "failed";
  const text = (await answer.text()).slice(0, MAX_REASON).trim();
  try {
    const { message, next_step: nextStep, position = null } = JSON.parse(text);
    if (typeof message === "string") return new Failure(kind, message, { nextStep, position });
  } catch {
    // A line of text, then.
  }
  const isPage = (answer.headers.get("content-type") ?? "").includes("html");
  return new Failure(kind, isPage || !text ? `The console answered ${answer.status}.` : text);
}

function read(line) {
  try {
    return JSON.parse(line);
  } catch {
    throw new Failure("broken", "The stream holds a line that cannot be read.");
  }
}
