// How far a stream has come in each partition, so that another one can go on there and nothing is
// lost or comes twice.

export class Positions {
  #next = new Map();

  take(frame) {
    if (frame.type === "start") for (const { partition, from } of frame.partitions) this.#set(partition, from);
    else if (frame.type === "record") this.#set(frame.partition, BigInt(frame.offset) + 1n);
    else if (frame.type === "gap") this.#set(frame.partition, frame.next);
    // What a filter has left out is behind, too.
    else if (frame.type === "progress") for (const [partition, at] of frame.partitions) this.#set(partition, at);
  }

  clear() {
    this.#next.clear();
  }

  // As the server writes it.
  cursor() {
    return [...this.#next].map(([partition, offset]) => `${partition}:${offset}`).join(",");
  }

  // The newest line counts, although it may lie in front of an older one: a log that was cut, or
  // created again, goes on with lower offsets.
  #set(partition, offset) {
    this.#next.set(String(partition), BigInt(offset));
  }
}
