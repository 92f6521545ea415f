// How far a stream has come in each partition, so that another one can go on there and nothing is
// lost or comes twice.

export class Positions {
  #next = new Map();

  take(frame) {
    if (frame.type === "start") for (const { partition, from } of frame.partitions) this.#advance(partition, from);
    else if (frame.type === "record") this.#advance(frame.partition, BigInt(frame.offset) + 1n);
    else if (frame.type === "gap") this.#advance(frame.partition, frame.to);
    // What a filter has left out is behind, too.
    else if (frame.type === "progress") for (const [partition, at] of frame.partitions) this.#advance(partition, at);
  }

  clear() {
    this.#next.clear();
  }

  // As the server writes it.
  cursor() {
    return [...this.#next].map(([partition, offset]) => `${partition}:${offset}`).join(",");
  }

  #advance(partition, offset) {
    const [key, next] = [String(partition), BigInt(offset)];
    if (next > (this.#next.get(key) ?? -1n)) this.#next.set(key, next);
  }
}
