// Writes numbers of charts: with a unit for readers, short for an axis. The zone is the page's.

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const STEPS_MS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
  [1, "ms"],
];
const few = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
// From here on a tenth is noise.
const WHOLE_FROM = 100;
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

const SIGNS = { K: "k", M: "M", B: "G", T: "T" };

function bytes(value) {
  const size = Math.abs(value);
  const place = size < 1 ? 0 : Math.min(BINARY.length - 1, Math.floor(Math.log2(size) / 10));
  return `${few.format(value / 1024 ** place)} ${BINARY[place]}`;
}

function duration(value) {
  const [size, unit] = STEPS_MS.find(([size]) => Math.abs(value) >= size) ?? [1, "ms"];
  return `${few.format(value / size)} ${unit}`;
}

const isBytes = (unit) => unit.startsWith("bytes");
const perSecond = (unit) => (unit.endsWith("/s") ? "/s" : "");

export function written(value, unit) {
  if (value === null || value === undefined) return "no sample";
  if (isBytes(unit)) return `${bytes(value)}${perSecond(unit)}`;
  if (unit === "ms") return duration(value);
  if (unit === "s") return duration(1000 * value);
  const number = (Math.abs(value) < WHOLE_FROM ? tenths : whole).format(value);
  return unit ? `${number} ${unit}` : number;
}

// The axis stands beside the unit of the chart, so it repeats only what differs from tick to tick.
export function onAxis(value, unit) {
  if (isBytes(unit)) return bytes(value);
  if (unit === "ms") return value === 0 ? "0" : duration(value);
  if (unit === "s") return value === 0 ? "0" : duration(1000 * value);
  // As tables write them: 60 k, and not 60K.
  return compact.format(value).replace(/[KMBT]$/, (sign) => ` ${SIGNS[sign]}`);
}

// Steps of an axis: bytes and times have other round numbers than everything else.
const POWERS = [...Array(51).keys()].map((power) => 2 ** power);
const ROUND_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200];
const DAYS_S = [1, 2, 5, 10, 20, 50, 100, 200, 500].map((days) => 86_400 * days);
const BELOW_S = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
const SPANS_S = [...BELOW_S, ...ROUND_S, ...DAYS_S];

export function increments(unit) {
  if (isBytes(unit)) return POWERS;
  if (unit === "s") return SPANS_S;
  return unit === "ms" ? SPANS_S.map((seconds) => 1000 * seconds) : undefined;
}

export const zone = document.body.dataset.zone || "UTC";

const format = (options) =>
  new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", ...options });
const CLOCK = format({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const MINUTE = format({ hour: "2-digit", minute: "2-digit" });
const DAY = format({ day: "numeric", month: "short" });

export const clock = (seconds) => CLOCK.format(1000 * seconds);
export const moment = (seconds) => `${DAY.format(1000 * seconds)} ${clock(seconds)}`;

export function onTimeAxis(seconds, increment_s) {
  return increment_s >= 86_400 ? DAY.format(1000 * seconds) : MINUTE.format(1000 * seconds);
}
