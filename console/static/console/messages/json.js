// Lays JSON out over lines without reading it: every number and key stays as it was written, so that
// a 64-bit number is not rounded. Characters that were written by their numbers are shown as
// themselves. Text that is no JSON, or is cut, goes as far as it goes.

// Beyond this the page would be slow; what is longer is shown as it is.
export const MAX_TEXT = 256 * 1024;
// Deeper than this, a line begins no further to the right.
const MAX_INDENT = 40;
const STEP = "  ";
const TOKEN = /"(?:[^"\\]|\\[^])*(?:"|\\?$)|[{}[\],:]|[^\s{}[\],:"]+/g;

// A character by its number, a pair of numbers for one beyond 16 bits; or any other escape.
const ESCAPE = /\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|\\u([0-9a-f]{4})|\\[^]/gi;
// What has to stay an escape: quotes, backslashes, and signs that are invisible or turn a line.
const STAYS = /["\\\p{C}\p{Z}]/u;

// Returns a JSON text with its characters as themselves, where that cannot be misread.
function readable(text) {
  return text.replace(ESCAPE, (escape, high, low, unit) => {
    const units = high ? [high, low] : unit ? [unit] : [];
    if (!units.length) return escape;
    const sign = String.fromCharCode(...units.map((each) => parseInt(each, 16)));
    return STAYS.test(sign) ? escape : sign;
  });
}

const isNumber = (word) => /^-?\d/.test(word);

// Returns pieces [kind, text]; kinds are key, text, number, word, sign and space.
export function laidOut(text) {
  if (text.length > MAX_TEXT) return [["plain", text]];
  const pieces = [];
  const tokens = text.match(TOKEN) ?? [];
  let depth = 0;
  const newLine = () => pieces.push(["space", "\n" + STEP.repeat(Math.min(depth, MAX_INDENT))]);
  tokens.forEach((token, at) => {
    const next = tokens[at + 1];
    if (token === "{" || token === "[") {
      pieces.push(["sign", token]);
      depth += 1;
      if (next !== undefined && next !== "}" && next !== "]") newLine();
    } else if (token === "}" || token === "]") {
      depth = Math.max(0, depth - 1);
      if (tokens[at - 1] !== "{" && tokens[at - 1] !== "[") newLine();
      pieces.push(["sign", token]);
    } else if (token === ",") {
      pieces.push(["sign", token]);
      newLine();
    } else if (token === ":") pieces.push(["sign", token], ["space", " "]);
    else if (token[0] === '"') pieces.push([next === ":" ? "key" : "text", readable(token)]);
    else pieces.push([isNumber(token) ? "number" : "word", token]);
  });
  return pieces;
}

export const asText = (pieces) => pieces.map(([, text]) => text).join("");
