// Tells the server the zone of this browser, and keeps texts such as "3 min ago" true.

const A_YEAR = 365 * 24 * 3600;
const UNITS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];
// As console/times.py.
const NOW_SECONDS = 2;
const EVERY_MS = 5000;

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) {
  document.cookie = `samsa-zone=${zone}; Path=/; Max-Age=${A_YEAR}; SameSite=Lax`;
}

function ago(then) {
  const seconds = (Date.now() - then) / 1000;
  if (Math.abs(seconds) < NOW_SECONDS) return "now";
  const [size, unit] = UNITS.find(([size]) => Math.abs(seconds) >= size);
  const amount = `${Math.floor(Math.abs(seconds) / size)} ${unit}`;
  return seconds > 0 ? `${amount} ago` : `in ${amount}`;
}

setInterval(() => {
  for (const element of document.querySelectorAll("time[data-ago]")) {
    const text = ago(Date.parse(element.dateTime));
    if (element.textContent !== text) element.textContent = text;
  }
}, EVERY_MS);
