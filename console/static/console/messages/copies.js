// Writes a record as commands and as JSON, for whoever wants it elsewhere. Pure: a record comes with
// all of its bytes, and a text goes out.
// A record is {topic, cluster, bootstrap, partition, offset, timestampMs, key, value, headers}; keys
// and values are bytes or null, headers [name, bytes or null]; the offset is a text.

import { textOf, toBase64 } from "./bytes.js";
import { quoted, quotedText } from "./shell.js";

// What parts the key from the value on kcat's standard input, and what ends them: the first of these
// that they do not hold, as kcat reads it and as it is.
const MARKS = ["\n", "\x1e", "\x1f", "\x1e\x1f", "\x1f\x1f\x1e", "\x1e\x1e\x1f"].map((mark) => [
  [...mark].map((sign) => (sign === "\n" ? "\\n" : `\\x${sign.charCodeAt(0).toString(16)}`)).join(""),
  new TextEncoder().encode(mark),
]);
// Linux takes no longer argument of a program.
const MAX_ARGUMENT = 100_000;
const DEFAULT_REST = "localhost:8082";
const NOTHING = new Uint8Array(0);

export function asJson(record) {
  const shown = {
    topic: record.topic,
    partition: record.partition,
    offset: record.offset,
    timestamp: moment(record.timestampMs),
    timestamp_ms: record.timestampMs,
    key: textOrBase64(record.key),
    value: textOrBase64(record.value),
    headers: record.headers.map(([name, value]) => ({ name, value: textOrBase64(value) })),
  };
  return JSON.stringify(shown, null, 2);
}

function textOrBase64(bytes) {
  if (bytes === null) return null;
  return textOf(bytes) ?? { base64: toBase64(bytes) };
}

export function asKcatRead(record) {
  const { bootstrap, topic, partition, offset } = record;
  return `kcat -C -b ${quotedText(bootstrap)} -t ${quotedText(topic)} -p ${partition} -o ${offset} -c 1`;
}

// Writes the same record again. What kcat cannot say stands in a comment before it.
export function asKcatWrite(record) {
  const words = ["kcat", "-P", "-b", quotedText(record.bootstrap), "-t", quotedText(record.topic)];
  words.push("-p", String(record.partition));
  const lost = [];
  const value = record.value ?? NOTHING;
  const keyWord = record.key === null ? "" : quoted(record.key);
  // An input without a byte is no record, and an argument holds no NUL: then the key goes in as well.
  const isKeyInside = !fits(keyWord) || value.length === 0;
  const key = isKeyInside ? record.key ?? NOTHING : NOTHING;
  const middle = isKeyInside ? MARKS.find(([, mark]) => !holds(key, mark)) : ["", NOTHING];
  const input = joined(key, middle?.[1] ?? NOTHING, value);
  const end = MARKS.find(([, mark]) => !holds(input, mark));
  if (!middle || !end) return "# kcat cannot write this record: it holds every mark that could part or end it";
  if (isKeyInside) words.push("-K", `'${middle[0]}'`);
  else if (record.key !== null) words.push("-k", keyWord);
  for (const [name, bytes] of record.headers) {
    const word = headerWord(name, bytes);
    if (!fits(word)) lost.push(`the header ${JSON.stringify(name)}`);
    else words.push("-H", word);
  }
  // It makes a null of a key without bytes, too, and without it there is none.
  if (record.value === null) words.push("-Z");
  if (record.value === null && record.key?.length === 0) lost.push("the empty key, which becomes null");
  if (record.value?.length === 0 && record.key === null) lost.push("the null key, which becomes empty");
  if (end[0] !== "\\n") words.push("-D", `'${end[0]}'`);
  const remark = lost.length ? `# without ${lost.join(", ")}: kcat cannot say it\n` : "";
  return `${remark}${piped(input)} | ${words.join(" ")}`;
}

const fits = (word) => word !== undefined && word.length <= MAX_ARGUMENT;

function headerWord(name, bytes) {
  if (name.includes("=")) return undefined;
  const prefix = new TextEncoder().encode(bytes === null ? name : `${name}=`);
  return quoted(joined(prefix, bytes ?? NOTHING));
}

// A part of a command that prints just these bytes.
function piped(bytes) {
  const word = quoted(bytes);
  if (word !== undefined) return `printf %s ${word}`;
  return `printf %s ${toBase64(bytes)} | base64 -d`;
}

const holds = (bytes, mark) => bytes.some((_, at) => mark.every((byte, by) => bytes[at + by] === byte));

const joined = (...pieces) => Uint8Array.from(pieces.flatMap((piece) => [...piece]));

// Kafka's REST API, version 3, as the gateway and every proxy of it take it; the token is the
// shell's, so that none is in the text.
export function asCurl(record) {
  const fields = [`"partition_id": ${record.partition}`];
  if (record.headers.length) {
    const headers = record.headers.map(
      ([name, value]) =>
        `{"name": ${JSON.stringify(name)}, "value": ${value === null ? "null" : `"${toBase64(value)}"`}}`,
    );
    fields.push(`"headers": [${headers.join(", ")}]`);
  }
  if (record.key !== null) fields.push(`"key": ${restData(record.key)}`);
  fields.push(`"value": ${record.value === null ? '{"type": "BINARY", "data": null}' : restData(record.value)}`);
  const time = moment(record.timestampMs);
  if (time !== null) fields.push(`"timestamp": "${time}"`);
  const body = quotedText(`{${fields.join(", ")}}`);
  const address =
    `"\${REST_URL:-${DEFAULT_REST}}"` +
    quotedText(`/v3/clusters/${encodeURIComponent(record.cluster)}/topics/${encodeURIComponent(record.topic)}/records`);
  const start = "curl -sS -X POST -H \"Authorization: Bearer $SAMSA_TOKEN\" -H 'Content-Type: application/json'";
  if (body.length <= MAX_ARGUMENT) return `${start} ${address} --data-binary ${body}`;
  return `printf %s ${body} | ${start} ${address} --data-binary @-`;
}

function restData(bytes) {
  const text = textOf(bytes);
  if (text === undefined) return `{"type": "BINARY", "data": "${toBase64(bytes)}"}`;
  if (isJson(text)) return `{"type": "JSON", "data": ${text}}`;
  return `{"type": "STRING", "data": ${JSON.stringify(text)}}`;
}

// Only asks; the text goes on as it is, since reading it would round its numbers.
function isJson(text) {
  if (!/^\s*[{[]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

// Returns a time as ISO 8601; null where it is none that a calendar has.
function moment(timestampMs) {
  const number = Number(timestampMs);
  return timestampMs !== null && timestampMs !== "" && Math.abs(number) <= 8.64e15 && number >= 0
    ? new Date(number).toISOString()
    : null;
}
