"""Reads exactly one range of offsets of one partition, as Arrow batches of bounded size.

While one response is decoded the broker prepares the next: its request is sent as soon as the batch
headers show where it begins. Topics are fetched by id, so a recreated topic of the same name is
never read instead of the old one.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow

from spark_integration.datasource.batches import Batch, Visible, batches
from spark_integration.datasource.columns import arrow_batch
from spark_integration.datasource.decode import Section, decode, unpack
from spark_integration.datasource.errors import CorruptBatch, DataLost
from spark_integration.datasource.wire import messages
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.connection import Connection
from spark_integration.datasource.wire.errors import (
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_TOPIC,
    BrokerError,
    Unreachable,
    check,
)
from spark_integration.datasource.wire.messages import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Fetched,
    TopicPartition,
)

LOG: Final = logging.getLogger("samsa.spark")
# The limit of one response; its first batch may be larger.
FETCH_BYTES: Final = 4 * 2**20
# How long a broker waits for new records.
WAIT_MS: Final = 500
# Spark's own batches have ten thousand rows; more rows cost memory and gain nothing.
ROWS: Final = 10_000
# The decompressed size of an Arrow batch, so that a batch has only a few large records.
BYTES: Final = 8 * 2**20
# After this many empty responses in a row from a log that continues, compaction has left nothing.
EMPTY_ANSWERS: Final = 3
# How often to fetch a damaged batch again.
CORRUPT_TRIES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The range to read, from `start` to before `end`."""

    topic: str
    topic_id: bytes
    partition: int
    start: int
    end: int

    @property
    def where(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read."""

    is_committed: bool = False
    has_headers: bool = False
    # Whether deleted records fail the read, or are skipped with a warning.
    has_to_be_whole: bool = True
    fetch_bytes: int = FETCH_BYTES
    wait_ms: int = WAIT_MS
    # The longest time without progress.
    patience_seconds: float = 120.0


def read_range(cluster: Cluster, wanted: Range, reading: Reading) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of a range."""
    with contextlib.closing(RangeFetch(cluster, wanted, reading)) as fetch:
        sections: list[Section] = []
        rows = size = 0
        first = wanted.start
        for batch in fetch.visible_batches():
            is_full = rows >= ROWS or size >= BYTES
            if sections and (is_full or fetch.first_offset != first):
                yield decoded(sections, wanted, reading, first)
                sections = []
                rows = size = 0
            first = fetch.first_offset
            section = unpack(batch)
            sections.append(section)
            rows += section.record_count
            size += len(section.data)
        if sections:
            yield decoded(sections, wanted, reading, first)


def decoded(
    sections: list[Section], wanted: Range, reading: Reading, first: int
) -> pyarrow.RecordBatch:
    columns = decode(sections, start=first, end=wanted.end, has_headers=reading.has_headers)
    return arrow_batch(columns, topic=wanted.topic, partition=wanted.partition)


class RangeFetch:
    """The position within a range, and the response in flight."""

    def __init__(
        self,
        cluster: Cluster,
        wanted: Range,
        reading: Reading,
        *,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._reading = reading
        self._pause = pause
        self._offset = wanted.start
        # The next offset to return; a batch may begin before it.
        self.first_offset = wanted.start
        self._isolation = READ_COMMITTED if reading.is_committed else READ_UNCOMMITTED
        self._ahead: Connection | None = None
        self._empty_answers = 0
        self._corrupt_tries = 0

    def close(self) -> None:
        """Discard a response in flight, with its connection."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def visible_batches(self) -> Iterator[Batch]:
        while self._offset < self._wanted.end:
            fetched = self._fetch()
            if fetched.error_code == OFFSET_OUT_OF_RANGE:
                self._step_over_loss()
                continue
            found = self._checked_batches(fetched)
            if not found:
                self._step_over_nothing(fetched)
                continue
            self._empty_answers = self._corrupt_tries = 0
            self._offset = max(self._offset, min(found[-1].last_offset + 1, self._wanted.end))
            if self._offset < self._wanted.end:
                self._send_ahead()
            visible = Visible(fetched.aborted if self._reading.is_committed else ())
            for batch in found:
                if visible.has(batch) and batch.base_offset < self._wanted.end:
                    yield batch

    def _checked_batches(self, fetched: Fetched) -> list[Batch]:
        """Return complete batches that reach the position; fetch damaged ones again."""
        found: list[Batch] = []
        why = "its first batch is cut, or ends before the requested offset"
        try:
            # A broker may begin with a batch that ends before the requested offset.
            for batch in batches(fetched.records):
                found += [batch] if batch.last_offset >= self._offset else []
        except CorruptBatch as error:
            # Use the batches before it; it comes first in the next response.
            why = str(error)
        if fetched.records and not found:
            self._corrupt_tries += 1
            if self._corrupt_tries >= CORRUPT_TRIES:
                raise CorruptBatch(
                    f"{self._wanted.where} cannot be read at offset {self._offset}: {why};"
                    f" {self._corrupt_tries} attempts failed: continue at an offset after it, or"
                    " restore the partition"
                )
        return found

    def _request(self) -> bytes:
        return messages.fetch_request(
            self._wanted.topic_id,
            self._wanted.partition,
            self._offset,
            max_bytes=self._reading.fetch_bytes,
            max_wait_ms=self._reading.wait_ms,
            isolation=self._isolation,
        )

    def _fetch(self) -> Fetched:
        try:
            return self._cluster.retried(
                self._fetch_once,
                f"Fetch {self._wanted.where}",
                seconds=self._reading.patience_seconds,
            )
        except BrokerError as error:
            if error.code in UNKNOWN_TOPIC:
                raise DataLost(
                    f"topic {self._wanted.topic} was deleted or recreated before offsets"
                    f" {self._offset} to {self._wanted.end} of {self._wanted.where} were read"
                ) from error
            raise

    def _fetch_once(self) -> Fetched:
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            ahead = self._cluster.connection_to(self._cluster.leader_of(self._wanted.where))
            ahead.send(messages.FETCH, self._request())
        fetched = messages.read_fetch(ahead.answer(more_seconds=self._reading.wait_ms / 1000))
        if fetched.error_code != OFFSET_OUT_OF_RANGE:
            check(fetched.error_code, f"Fetch {self._wanted.where} at {self._offset}")
        return fetched

    def _send_ahead(self) -> None:
        # If it fails, the next fetch detects this and retries.
        with contextlib.suppress(Unreachable, BrokerError):
            node = self._cluster.leader_of(self._wanted.where)
            connection = self._cluster.connection_to(node)
            connection.send(messages.FETCH, self._request())
            self._ahead = connection

    def _step_over_nothing(self, fetched: Fetched) -> None:
        """Handle an empty response: wait for records, or detect that none will come."""
        if fetched.throttle_ms:
            self._pause(min(fetched.throttle_ms / 1000, self._reading.patience_seconds))
            return
        if fetched.records:
            return
        self._empty_answers += 1
        bound = fetched.last_stable_offset if self._reading.is_committed else fetched.high_watermark
        if self._empty_answers < EMPTY_ANSWERS:
            return
        if bound >= self._wanted.end:
            self._offset = self._wanted.end
        elif self._empty_answers * self._reading.wait_ms / 1000 > self._reading.patience_seconds:
            self._lose(self._wanted.end, f"the log ends at {bound}")

    def _step_over_loss(self) -> None:
        where = self._wanted.where
        first = self._cluster.list_offsets({where: EARLIEST})[where]
        last = self._cluster.list_offsets({where: LATEST})[where]
        if self._offset < first:
            self._lose(first, f"the log begins at {first}")
        elif self._offset > last:
            self._lose(self._wanted.end, f"the log ends at {last}")

    def _lose(self, until: int, why: str) -> None:
        """Skip deleted records, or fail, according to the option."""
        until = min(until, self._wanted.end)
        text = f"offsets {self._offset} to {until} of {self._wanted.where} are gone: {why}"
        if self._reading.has_to_be_whole:
            raise DataLost(
                f"{text}; they were deleted before they were read. To continue without them, set"
                " the option failOnDataLoss to false"
            )
        LOG.warning("records.lost %s", text)
        self._offset = self.first_offset = until
