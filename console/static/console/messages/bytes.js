// The bytes behind what a frame shows of a key, a value or a header.

const HEX_PAIRS = /^(?:[0-9a-f]{2})*$/i;

// Returns the exact bytes; null for a null; undefined where the frame does not hold them all, so
// that they have to be asked for.
export function bytesOf(part) {
  if (part.kind === "null") return null;
  if (part.kind === "empty") return new Uint8Array(0);
  if (part.is_cut || (part.schema_id !== null && part.schema_id !== undefined)) return undefined;
  let found;
  // A sign in the place of bytes that are no text says nothing of those bytes.
  const isText = part.kind === "text" || part.kind === "json";
  if (isText && !part.text.includes("\ufffd")) found = new TextEncoder().encode(part.text);
  else if (part.kind === "hex") found = fromHex(part.text);
  else if (part.kind === "base64") found = fromBase64(part.text);
  // What was decoded from another form is read again from the record, and so is what does not fit.
  return found?.length === part.bytes ? found : undefined;
}

export function fromHex(text) {
  const digits = text.replace(/\s+/g, "");
  if (!HEX_PAIRS.test(digits)) return undefined;
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export function fromBase64(text) {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}

// In pieces: a call with a hundred thousand arguments fails.
const PIECE = 8192;

export function toBase64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += PIECE) {
    text += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  }
  return btoa(text);
}

// Returns the text of bytes, or undefined where they are not UTF-8.
export function textOf(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
