// Numbers, sizes and times as the page writes them. 64-bit numbers come and stay as texts.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function number(value) {
  try {
    return BigInt(value).toLocaleString("en");
  } catch {
    return String(value);
  }
}

export function size(bytes) {
  let [amount, unit] = [bytes, 0];
  while (amount >= 1024 && unit < UNITS.length - 1) [amount, unit] = [amount / 1024, unit + 1];
  return unit === 0 ? `${bytes} B` : `${amount.toFixed(amount < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

export const counted = (amount, noun) => `${number(amount)} ${noun}${BigInt(amount) === 1n ? "" : "s"}`;

// One sentence of whatever was told: it begins large and has an end.
export function sentence(text) {
  const said = (text ?? "").trim();
  if (!said) return "";
  return said[0].toUpperCase() + said.slice(1) + (/[.!?:…]$/.test(said) ? "" : ".");
}

// The share of a way that is gone, 0 to 1, whichever way it leads; exact enough for a bar.
export function share(from, at, to) {
  const [start, here, end] = [BigInt(from), BigInt(at), BigInt(to)];
  if (start === end) return 1;
  return Math.min(1, Math.max(0, Number(((here - start) * 1000n) / (end - start)) / 1000));
}

// What a calendar has; a record may claim any other number of milliseconds.
const LAST_MS = 8.64e15;

const format = (zone) =>
  new Intl.DateTimeFormat("en-GB", {
    timeZone: zone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3,
    hourCycle: "h23",
    timeZoneName: "longOffset",
  });

// Writes milliseconds since 1970 in one zone: the text, and a title with UTC and the number.
export class Clock {
  #formats;
  #zone;

  constructor(zone) {
    this.#zone = zone;
    this.#formats = { local: format(zone), utc: format("UTC") };
  }

  // Returns {text, title, iso}; iso is empty for what no calendar has.
  shown(milliseconds) {
    if (milliseconds === null || milliseconds === "" || milliseconds === undefined) {
      return { text: "none", title: "The record has no time", iso: "" };
    }
    const value = Number(milliseconds);
    if (!(Math.abs(value) <= LAST_MS)) {
      return { text: `${milliseconds} ms`, title: "Milliseconds since 1970, beyond any calendar", iso: "" };
    }
    const date = new Date(value);
    const local = this.#written("local", date);
    const utc = `${this.#written("utc", date).text} UTC`;
    const title = this.#zone === "UTC" ? utc : `${local.text} ${this.#zone} (${local.offset}) · ${utc}`;
    return { text: local.text, title: `${title} · ${milliseconds} ms`, iso: date.toISOString() };
  }

  #written(name, date) {
    const parts = Object.fromEntries(this.#formats[name].formatToParts(date).map((part) => [part.type, part.value]));
    const { year, month, day, hour, minute, second, fractionalSecond, timeZoneName } = parts;
    return { text: `${year}-${month}-${day} ${hour}:${minute}:${second}.${fractionalSecond}`, offset: timeZoneName };
  }
}
