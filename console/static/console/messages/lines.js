// Cuts a stream of bytes into lines of text, as fast as they are taken and no faster: what is not
// taken stays with the server.

// A frame holds one record, whose parts are cut at 16 KB each: what is longer is no frame.
export const MAX_LINE = 4 * 1024 * 1024;

// Yields the whole lines of each chunk together; a last line without an end is one, too.
export async function* lines(reader, maxLine = MAX_LINE) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  // The beginning of a line whose end has not come; joined once, when it has.
  let parts = [];
  let waiting = 0;
  for (;;) {
    const { done, value } = await reader.read();
    const text = done ? decoder.decode() : decoder.decode(value, { stream: true });
    const cut = text.split("\n");
    const last = cut.pop();
    if (cut.length) {
      cut[0] = parts.join("") + cut[0];
      parts = [];
      waiting = 0;
      const whole = cut.filter((line) => line !== "");
      if (whole.length) yield whole;
    }
    if (last) parts.push(last);
    waiting += last.length;
    if (waiting > maxLine) throw new Error(`a line of the stream is longer than ${maxLine} characters`);
    if (done) {
      if (waiting) yield [parts.join("")];
      return;
    }
  }
}
