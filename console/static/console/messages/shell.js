// Writes bytes as one word of a shell's command, so that none of them means anything there.
// For bash and zsh; what needs no `$'…'` is for every shell.

import { textOf } from "./bytes.js";

const PLAIN = /^[\w@%+=:,./-]+$/;
// Letters, digits, signs and spaces as one sees them. Others, such as a mark that turns the
// direction of a text, would make a line look like another one; a newline would run it.
const VISIBLE = /^[\p{L}\p{N}\p{P}\p{S} ]*$/u;
// Understood by the shell in every place, or only by its history.
const SPECIAL = new Set(["'", "\\", "!"]);
const NAMED = new Map([["\n", "\\n"], ["\t", "\\t"], ["\r", "\\r"], ["\\", "\\\\"]]);

// Returns undefined for what no word can hold: a word ends at a NUL.
export function quoted(bytes) {
  if (bytes.includes(0)) return undefined;
  const text = textOf(bytes);
  if (text === undefined) return `$'${[...bytes].map(escapedByte).join("")}'`;
  if (PLAIN.test(text)) return text;
  if (VISIBLE.test(text) && !text.includes("!")) return `'${text.replaceAll("'", "'\\''")}'`;
  return `$'${[...text].map(escaped).join("")}'`;
}

export const quotedText = (text) => quoted(new TextEncoder().encode(text));

// Always three digits: what follows must not be read as one more.
const octal = (byte) => `\\${byte.toString(8).padStart(3, "0")}`;

function escapedByte(byte) {
  const letter = String.fromCharCode(byte);
  return byte < 0x80 ? escaped(letter) : octal(byte);
}

function escaped(letter) {
  if (NAMED.has(letter)) return NAMED.get(letter);
  if (VISIBLE.test(letter) && !SPECIAL.has(letter)) return letter;
  return [...new TextEncoder().encode(letter)].map(octal).join("");
}
