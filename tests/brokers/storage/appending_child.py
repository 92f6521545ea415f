"""A program that appends to a few logs and says what is safe, until somebody kills it.

    python -m tests.brokers.storage.appending_child LIVE JOURNAL ROUND [hasty]

It does what a broker does: opens its log dir after whatever happened before, appends, flushes in
groups in a second thread while it goes on, keeps the checkpoints, deletes old segments, now and
then closes everything and begins anew. Each line on its standard output is a promise: `opened
PARTITION END`, `safe PARTITION OFFSET` once everything below is flushed, `starts PARTITION OFFSET`
before older records may go. The hasty variant breaks its promise: it says `safe` before the flush.
"""

import os
import random
import struct
import sys
import threading

from brokers.protocol.records.builder import BatchBuilder
from brokers.storage.files import Files
from brokers.storage.fsync import FlushTicket
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.log_dir import LogDir
from tests.fakes.crash_files import CrashFiles

TOPIC = "orders"
TOPIC_ID = bytes(range(16))
PARTITIONS = 3
# Small segments, so that every round rolls some.
CONFIG = LogConfig(segment_bytes=16_000, index_interval_bytes=500, file_delete_delay_ms=0)
# What a record says of itself: its partition, the round that wrote it, and its offset.
SELF = struct.Struct(">iiq")
KEPT_OFFSETS = 400


def open_dir(path: str, files: Files) -> LogDir:
    """Every partition of the dir, after recovery if it needs any."""
    log_dir = LogDir(path, files=files, handles=Handles(files), config_for=lambda _topic: CONFIG)
    log_dir.load_all()
    assert not log_dir.failed, log_dir.failed
    damaged = [log.damage for log in log_dir.logs.values() if log.damage]
    assert not damaged, damaged
    return log_dir


class Program:
    def __init__(self, live: str, journal: str, number: int, *, is_hasty: bool) -> None:
        self.live = live
        self.files = CrashFiles(live, journal)
        self.rng = random.Random()
        self.number = number
        self.is_hasty = is_hasty
        self.tickets: list[tuple[int, PartitionLog, FlushTicket]] = []
        self.flusher: threading.Thread | None = None
        say("started")
        self.open()

    def open(self) -> None:
        self.log_dir = open_dir(self.live, self.files)
        self.logs = []
        for partition in range(PARTITIONS):
            log = self.log_dir.logs.get((TOPIC, partition))
            if log is None:
                log = self.log_dir.create(TOPIC, partition, TOPIC_ID)
            say("opened", partition, log.end_offset)
            self.logs.append(log)

    def run(self) -> None:
        while True:
            for _ in range(self.rng.randrange(30)):
                self.append(self.rng.randrange(PARTITIONS))
            if self.flusher is None:
                self.begin_flush()
            elif not self.flusher.is_alive():
                self.finish_flush()
                if self.rng.random() < 0.01:
                    assert self.log_dir.close(broker_epoch=self.number)
                    self.open()
            if self.rng.random() < 0.02:
                self.log_dir.write_checkpoints()
            if self.rng.random() < 0.02:
                self.delete_old_segments()

    def append(self, partition: int) -> None:
        log = self.logs[partition]
        builder = BatchBuilder()
        for index in range(self.rng.choice([1, 1, 3, 10])):
            itself = SELF.pack(partition, self.number, log.end_offset + index)
            builder.append(None, itself + bytes(self.rng.choice([0, 50, 500])), timestamp=1)
        log.append(memoryview(builder.build()), leader_epoch=0, now_ms=1)
        if self.is_hasty:
            say("safe", partition, log.end_offset)

    def begin_flush(self) -> None:
        for partition, log in enumerate(self.logs):
            ticket = log.begin_flush()
            if ticket is not None:
                self.tickets.append((partition, log, ticket))
        self.flusher = threading.Thread(target=self.sync, daemon=True)
        self.flusher.start()

    def sync(self) -> None:
        for _, _, ticket in self.tickets:
            ticket.run()

    def finish_flush(self) -> None:
        for partition, log, ticket in self.tickets:
            say("safe", partition, log.finish_flush(ticket))
        self.tickets.clear()
        self.flusher = None

    def delete_old_segments(self) -> None:
        for partition, log in enumerate(self.logs):
            start = log.flushed_offset - KEPT_OFFSETS
            if start > log.start_offset:
                say("starts", partition, start)
                log.advance_log_start(start)
        self.log_dir.write_log_starts()
        for log in self.logs:
            log.delete_old_segments(now_ms=1)
            log.delete_pending(now_ms=1)


def say(word: str, *numbers: int) -> None:
    # One call per line: what was not said in full was not promised.
    os.write(1, (" ".join((word, *map(str, numbers))) + "\n").encode())


if __name__ == "__main__":
    Program(sys.argv[1], sys.argv[2], int(sys.argv[3]), is_hasty="hasty" in sys.argv[4:]).run()
