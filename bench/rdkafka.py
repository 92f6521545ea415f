"""What a user of librdkafka sees: its C calls, driven from Python in batches of thousands.

The Python package's own produce and poll calls cost more than a broker does, and would measure
themselves; the library that it carries is called directly instead, so that only C runs for each
record. `python -m bench.rdkafka` takes a job as JSON on its standard input and prints what it saw.
"""

import ctypes
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import confluent_kafka

PRODUCER, CONSUMER = 0, 1
# A message's payload is copied by the library: the same bytes serve every record.
COPY_FLAG = 0x2
OFFSET_BEGINNING = -2
BATCH = 10_000
ERROR_BYTES = 512
FLUSH_MS = 60_000
QUEUE_FULL = -184
SILENCE_MS = 10_000


class Message(ctypes.Structure):
    """`rd_kafka_message_t`, a part of the library's public interface."""

    _fields_ = (
        ("err", ctypes.c_int),
        ("rkt", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_len", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    bootstrap: str
    topic: str
    is_producer: bool
    bytes_each: int
    records: int
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    records: int
    seconds: float


def library() -> ctypes.CDLL:
    """The librdkafka inside the installed client."""
    package = Path(confluent_kafka.__file__).parent
    (found,) = (package.parent / "confluent_kafka.libs").glob("librdkafka*.so*")
    loaded = ctypes.CDLL(str(found))
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_topic_new"):
        getattr(loaded, name).restype = ctypes.c_void_p
    loaded.rd_kafka_new.argtypes = (
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
    )
    loaded.rd_kafka_conf_set.argtypes = (
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
    )
    loaded.rd_kafka_topic_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    loaded.rd_kafka_produce_batch.argtypes = (
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_int,
        ctypes.POINTER(Message),
        ctypes.c_int,
    )
    loaded.rd_kafka_consume_start.argtypes = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64)
    loaded.rd_kafka_consume_batch.argtypes = (
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_int,
        ctypes.POINTER(ctypes.POINTER(Message)),
        ctypes.c_size_t,
    )
    loaded.rd_kafka_consume_batch.restype = ctypes.c_ssize_t
    loaded.rd_kafka_consume_stop.argtypes = (ctypes.c_void_p, ctypes.c_int32)
    loaded.rd_kafka_message_destroy.argtypes = (ctypes.POINTER(Message),)
    for name in ("rd_kafka_poll", "rd_kafka_flush"):
        getattr(loaded, name).argtypes = (ctypes.c_void_p, ctypes.c_int)
    loaded.rd_kafka_outq_len.argtypes = (ctypes.c_void_p,)
    return loaded


class Client:
    """One instance of the library, for one topic."""

    def __init__(self, job: Job) -> None:
        self.library = library()
        conf = self.library.rd_kafka_conf_new()
        error = ctypes.create_string_buffer(ERROR_BYTES)
        for key, value in {"bootstrap.servers": job.bootstrap, **job.settings}.items():
            said = self.library.rd_kafka_conf_set(
                conf, key.encode(), value.encode(), error, ERROR_BYTES
            )
            assert said == 0, f"{key}={value}: {error.value.decode()}"
        kind = PRODUCER if job.is_producer else CONSUMER
        self.handle = self.library.rd_kafka_new(kind, conf, error, ERROR_BYTES)
        assert self.handle, error.value.decode()
        self.topic = self.library.rd_kafka_topic_new(self.handle, job.topic.encode(), None)

    def produce(self, records: int, bytes_each: int) -> None:
        """Produces to partition 0 and returns when every record is acknowledged."""
        payload = ctypes.create_string_buffer(b"x" * bytes_each, bytes_each)
        batch = (Message * BATCH)()
        for message in batch:
            message.payload = ctypes.addressof(payload)
            message.len = bytes_each
        left = records
        while left:
            count = min(BATCH, left)
            taken = self.library.rd_kafka_produce_batch(self.topic, 0, COPY_FLAG, batch, count)
            left -= taken
            if taken < count:
                assert batch[taken].err == QUEUE_FULL, f"produce failed with {batch[taken].err}"
                # The refused ones stand in the middle of the batch; all of them are alike.
                self.library.rd_kafka_poll(self.handle, 1)
        self.library.rd_kafka_flush(self.handle, FLUSH_MS)
        assert self.library.rd_kafka_outq_len(self.handle) == 0, "not all was acknowledged"

    def consume(self, records: int) -> None:
        """Reads that many records of partition 0 from its beginning."""
        assert self.library.rd_kafka_consume_start(self.topic, 0, OFFSET_BEGINNING) == 0
        found = (ctypes.POINTER(Message) * BATCH)()
        left = records
        while left > 0:
            count = self.library.rd_kafka_consume_batch(self.topic, 0, SILENCE_MS, found, BATCH)
            assert count > 0, f"{left} of {records} records did not come"
            for index in range(count):
                self.library.rd_kafka_message_destroy(found[index])
            left -= count
        self.library.rd_kafka_consume_stop(self.topic, 0)


def work(job: Job) -> Seen:
    client = Client(job)
    started = time.perf_counter()
    if job.is_producer:
        client.produce(job.records, job.bytes_each)
    else:
        client.consume(job.records)
    return Seen(records=job.records, seconds=time.perf_counter() - started)


def main() -> None:
    sys.stdout.write(json.dumps(asdict(work(Job(**json.load(sys.stdin))))))


if __name__ == "__main__":
    main()
