"""What every member of a group's story says and hears: a job, orders, and lines with times.

The job is the first line on standard input, as JSON. After it comes the order to leave, or the end
of the input, at which a member ends at once, as if it had crashed: its teller is gone. What happens
is told on standard output, one JSON document to a line, with the time of CLOCK_MONOTONIC, which all
processes of a machine share; tests/interop/ownership.py says what the words mean.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Any other order is to leave; this one is for who looks after another program, to kill it.
KILL = b"kill"
STDIN, STDOUT = 0, 1
INPUT_BYTES = 1 << 16
# A member that lost its teller; no client's own code.
ABANDONED = 70
# A member waits no longer for the next record, nor for the pace, without looking for orders.
POLL_SECONDS = 0.1
# What one poll may bring, so that reading, committing and orders take turns.
POLL_RECORDS = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    bootstrap: str
    topic: str
    group: str
    # classic or consumer, as Kafka's clients call the two.
    protocol: str = "classic"
    session_ms: int = 6000
    # A member reads no faster, so that a story has a middle.
    per_second: int = 5000
    # More of the client's own settings, by its own names.
    settings: Mapping[str, Any] = field(default_factory=dict)


class Orders:
    """What comes on standard input, heard by a thread, whatever the client is waiting for."""

    def __init__(self, on_order: Callable[[], object] = lambda: None) -> None:
        self._given = threading.Event()
        self._on_order = on_order
        # Whether the order is to kill; else it is to leave.
        self.is_to_kill = False
        # By descriptor: a thread that waits in Python's own reader could not be ended in peace.
        self._data = b""
        while b"\n" not in self._data:
            self._take()
        job, self._data = self._data.split(b"\n", 1)
        self.job = Job(**json.loads(job))
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def is_over(self) -> bool:
        return self._given.is_set()

    def wait(self, seconds: float) -> None:
        """Wait for an order, but not longer."""
        self._given.wait(max(0.0, seconds))

    def _listen(self) -> None:
        while True:
            if b"\n" in self._data:
                order, self._data = self._data.split(b"\n", 1)
                self.is_to_kill = order == KILL
                self._given.set()
                self._on_order()
            self._take()

    def _take(self) -> None:
        """Wait for input; its end is the end of the process."""
        data = os.read(STDIN, INPUT_BYTES)
        if not data:
            os._exit(ABANDONED)
        self._data += data


class Pace:
    """How long to wait so that no more than so many records come in a second."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._next = time.monotonic()

    def spend(self, count: int) -> None:
        """Count records; time in which there were none is not made up for."""
        now = time.monotonic()
        self._next = max(self._next, now) + count / self._per_second

    def left(self) -> float:
        return self._next - time.monotonic()


class Journal:
    """Tells lines; each goes out whole and at once, because the next moment may be the last."""

    def __init__(self) -> None:
        self._read: list[list[int]] = []

    def tell(self, what: str, *, ns: int | None = None, **facts: Any) -> None:
        line = {"ns": time.monotonic_ns() if ns is None else ns, "what": what, **facts}
        data = json.dumps(line).encode() + b"\n"
        while data:
            data = data[os.write(STDOUT, data) :]

    def assigned(self, partitions: Iterable[int]) -> None:
        self.tell("assigned", partitions=sorted(partitions))

    def revoked(self, partitions: Iterable[int]) -> None:
        self.tell("revoked", partitions=sorted(partitions))

    def lost(self, partitions: Iterable[int]) -> None:
        self.tell("lost", partitions=sorted(partitions))

    def closing(self) -> None:
        self.tell("closing")

    def note(self, partition: int, first: int, last: int | None = None) -> None:
        """Keep a record that was read, or several in a row, to be told with others."""
        end = first if last is None else last
        if self._read and self._read[-1][0] == partition and self._read[-1][2] == first - 1:
            self._read[-1][2] = end
        else:
            self._read.append([partition, first, end])

    def tell_read(self, *, ns: int | None = None) -> dict[int, int]:
        """Tell what was noted; return for each partition the offset to commit."""
        read, self._read = self._read, []
        if read:
            self.tell("read", ns=ns, offsets=read)
        return {partition: last + 1 for partition, _, last in read}

    def committed(self, offsets: Mapping[int, int]) -> None:
        """Tell offsets that the broker acknowledged."""
        self.tell("committed", offsets=sorted(offsets.items()))
