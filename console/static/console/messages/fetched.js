// All bytes of a record: from its frame where that holds them, else asked for, one part at a time.

import { bytesOf } from "./bytes.js";
import { sentence, size } from "./words.js";

// A larger part is downloaded: no clipboard and no view of bytes is of use for it.
export const MAX_PART = 1024 * 1024;
// Whoever waits longer tries again.
const PATIENCE_MS = 15_000;

export class TooLarge extends Error {}

export function partAddress(place, partition, offset, part) {
  const query = new URLSearchParams({ ...place, partition: String(partition), offset, part });
  return `/messages/record?${query}`;
}

// Returns the bytes of a part; null where it is null.
export async function bytesOfPart(place, frame, name, part) {
  const known = bytesOf(part);
  if (known !== undefined) return known;
  if (part.bytes > MAX_PART) {
    throw new TooLarge(`The ${name} has ${size(part.bytes)}; up to ${size(MAX_PART)} can be shown or copied. Download it.`);
  }
  const answer = await fetch(partAddress(place, frame.partition, frame.offset, name), {
    credentials: "same-origin",
    redirect: "error",
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (!answer.ok) {
    throw new Error(`The ${name} is not all here, and could not be read: ${await reasonOf(answer)}`);
  }
  return new Uint8Array(await answer.arrayBuffer());
}

async function reasonOf(answer) {
  try {
    const { message, next_step: nextStep } = await answer.json();
    return `${sentence(message)} ${sentence(nextStep)}`;
  } catch {
    return `the console answered ${answer.status}.`;
  }
}

// Returns the record with all of its bytes, as copies.js takes it.
export async function wholeRecord(place, bootstrap, frame) {
  if (frame.more_headers) {
    throw new TooLarge(`The record has ${frame.more_headers} more headers than are shown, so it cannot be copied here. Export it.`);
  }
  if (frame.headers.some((header) => header.is_unread)) {
    throw new Error("The record has a header whose name is not UTF-8, so its headers are not here and it cannot be copied. Search for the record to see them.");
  }
  const get = (name, part) => bytesOfPart(place, frame, name, part);
  const headers = [];
  for (const [at, header] of frame.headers.entries()) headers.push([header.name, await get(`header:${at}`, header.value)]);
  return {
    topic: place.topic,
    cluster: place.cluster,
    bootstrap,
    partition: frame.partition,
    offset: frame.offset,
    timestampMs: frame.timestamp_ms,
    key: await get("key", frame.key),
    value: await get("value", frame.value),
    headers,
  };
}
