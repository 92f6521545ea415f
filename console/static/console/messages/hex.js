// Shows bytes as people read them: place, sixteen in hexadecimal digits, and what is printable.

const PER_LINE = 16;

const hex = (number, digits) => number.toString(16).padStart(digits, "0");
const printable = (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".");

export function dump(bytes) {
  const found = [];
  for (let at = 0; at < bytes.length; at += PER_LINE) {
    const row = [...bytes.subarray(at, at + PER_LINE)];
    const halves = [row.slice(0, 8), row.slice(8)].map((half) => half.map((byte) => hex(byte, 2)).join(" "));
    found.push(`${hex(at, 8)}  ${halves.join("  ").padEnd(48)}  |${row.map(printable).join("")}|`);
  }
  return found.join("\n");
}
