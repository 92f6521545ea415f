"""Collects records into chunks, and writes each chunk to the bucket when it is full.

Chunks stay in this process between slices; if they are lost, the topic is read again from the last
chunk in the bucket. If an object exists already, an earlier attempt wrote it, but its answer or its
commit was lost. Its metadata has the end of that attempt's chunk, and this chunk ends there too.
So the result depends neither on where an attempt was interrupted, nor on the clock that closes
files.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from connectors.plugins.s3 import keys
from connectors.plugins.s3.chunks import ENTRY_BYTES, MAX_HELD_BYTES, Chunk, Entry, File, Rules
from connectors.plugins.s3.formats import Format
from connectors.plugins.s3.partitioners import Partitioner
from connectors.plugins.s3.store import MAX_KEY_BYTES, Store
from connectors.sdk.connector import Parsed, SinkContext, SinkTask
from connectors.sdk.errors import ConnectorError, DataError, RecordError, RetriableError
from connectors.sdk.records import SinkRecord, TopicPartition

KEPT: Final = "s3"
# Names of an object's metadata.
END: Final = "samsa-end"
RECORDS: Final = "samsa-records"


@dataclass(slots=True)
class Shelf:
    """The state of a partition: its open chunk, and the offset of the next record."""

    chunk: Chunk
    # None before the first record.
    position: int | None = None
    # The id of the topic of these offsets; empty if the cluster reports none.
    topic_id: str = ""
    # Whether the chunk must be written before further records are added.
    is_closed: bool = False
    # Records after a closed chunk; empty unless the bucket is unreachable.
    waiting: deque[Entry] = field(default_factory=deque)
    # Whether no record has arrived since the slice began.
    is_fresh: bool = True

    @property
    def durable(self) -> int | None:
        """Return the offset up to which everything is in the bucket."""
        held = self.chunk.entries or self.waiting
        return held[0].offset if held else self.position

    @property
    def size(self) -> int:
        return self.chunk.size + sum(entry.size for entry in self.waiting)


@dataclass(slots=True)
class Kept:
    """The state between slices; of no use to another owner of the task."""

    store: Store
    epoch: int
    # The config of the chunks: with another one, files end elsewhere or have other names.
    parsed: Parsed = field(repr=False)
    shelves: dict[TopicPartition, Shelf] = field(default_factory=dict)

    def close(self) -> None:
        self.store.close()


class S3Task(SinkTask):
    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._context: SinkContext
        self._kept: Kept
        self._format: Format
        self._partitioner: Partitioner
        self._rules: Rules
        self._parsed: Parsed = {}

    def start(self, context: SinkContext, parsed: Parsed) -> None:
        self._context = context
        self._parsed = parsed
        self._format = keys.make_format(parsed)
        self._partitioner = keys.make_partitioner(parsed)
        zone = ZoneInfo(parsed[keys.TIMEZONE] or "UTC")
        shift = datetime.fromtimestamp(self._clock(), zone).utcoffset()
        shift_ms = int(shift.total_seconds() * 1000) if shift else 0
        self._rules = keys.make_rules(parsed, zone_shift_ms=shift_ms)
        kept = context.kept.get(KEPT)
        if kept is None or (kept.epoch, kept.parsed) != (context.epoch, parsed):
            if kept is not None:
                kept.close()
            kept = Kept(Store(keys.make_bucket(parsed)), context.epoch, parsed)
            context.kept[KEPT] = kept
        self._kept = kept

    def open(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        shelves = self._kept.shelves
        ids = {place.topic: self._context.topic_id(place.topic) for place in partitions}
        for place, shelf in list(shelves.items()):
            now = ids.get(place.topic) or shelf.topic_id
            # Held records of a deleted topic do not belong to the new one, and their position may
            # be past its end.
            if shelf.topic_id not in {now, ""}:
                del shelves[place]
            shelf.topic_id = now
        new = [place for place in partitions if place not in shelves]
        for place in set(shelves) - set(partitions):
            del shelves[place]
        if new:
            self._abort_leftovers(new)
        for place in new:
            shelves[place] = Shelf(self._empty_chunk(), topic_id=ids[place.topic])
        for shelf in shelves.values():
            shelf.is_fresh = True
        return {
            place: shelf.position for place, shelf in shelves.items() if shelf.position is not None
        }

    def put(self, records: list[SinkRecord]) -> None:
        self._settle()
        for index, record in enumerate(records):
            place = TopicPartition(topic=record.origin_topic, partition=record.origin_partition)
            shelf = self._shelf(place, record.origin_offset)
            if shelf.position is not None and record.origin_offset < shelf.position:
                # A batch comes again if one of its records, or the bucket, has failed.
                continue
            try:
                entry = self._entry(record)
            except DataError as error:
                raise RecordError(str(error), index=index) from error
            shelf.position = record.origin_offset + 1
            if entry is not None:
                shelf.waiting.append(entry)
                self._drain(place, shelf)
        self._relieve()

    def flush(self) -> Mapping[TopicPartition, int]:
        """Write chunks that are due; return the offset of each partition in the bucket."""
        now_ms = int(self._clock() * 1000)
        for shelf in self._kept.shelves.values():
            shelf.is_closed = shelf.is_closed or shelf.chunk.is_due(self._rules, now_ms)
        self._settle()
        self._relieve()
        shelves = self._kept.shelves.items()
        return {place: shelf.durable for place, shelf in shelves if shelf.durable is not None}

    def _entry(self, record: SinkRecord) -> Entry | None:
        if record.value is None:
            if self._parsed["behavior.on.null.values"].lower() == "ignore":
                return None
            raise DataError("the record has no value; behavior.on.null.values=ignore leaves it out")
        payload, size = self._format.take(record)
        entry = Entry(
            offset=record.origin_offset,
            timestamp_ms=record.timestamp_ms,
            time_ms=self._partitioner.time_ms(record),
            folder=f"{record.first_place.topic}/{self._partitioner.folder(record)}",
            payload=payload,
            size=size + ENTRY_BYTES,
            schema=record.value_schema,
        )
        place = TopicPartition(topic=record.origin_topic, partition=record.origin_partition)
        if len(self._name(place, entry.folder, entry.offset).encode()) > MAX_KEY_BYTES:
            raise DataError(f"the name of its file would have more than {MAX_KEY_BYTES} bytes")
        return entry

    def _shelf(self, place: TopicPartition, offset: int) -> Shelf:
        shelf = self._kept.shelves.get(place)
        # A slice begins at the position. An earlier offset means that the topic was recreated, or
        # that a user has altered the offsets, so the held records do not belong to it.
        is_other = (
            shelf is not None
            and shelf.is_fresh
            and shelf.position is not None
            and offset < shelf.position
        )
        if shelf is None or is_other:
            topic_id = self._context.topic_id(place.topic)
            shelf = self._kept.shelves[place] = Shelf(self._empty_chunk(), topic_id=topic_id)
        shelf.is_fresh = False
        return shelf

    def _drain(self, place: TopicPartition, shelf: Shelf) -> None:
        """Move waiting records into chunks, and write full chunks."""
        while True:
            if shelf.is_closed:
                self._write(place, shelf)
                continue
            if not shelf.waiting:
                return
            if shelf.chunk.ends_before(shelf.waiting[0], self._rules):
                shelf.is_closed = True
                continue
            shelf.chunk.add(shelf.waiting.popleft())
            shelf.is_closed = shelf.chunk.is_full(self._rules)

    def _relieve(self) -> None:
        """Write the largest chunks early if this task, or its whole process, holds too much."""
        shelves = self._kept.shelves
        held = sum(shelf.size for shelf in shelves.values())
        most = min(held - self._context.hold(held), MAX_HELD_BYTES)
        for place in sorted(shelves, key=lambda place: -shelves[place].chunk.size):
            if held <= most:
                break
            shelf = shelves[place]
            if shelf.chunk.entries and shelf.chunk.wanted_end is None:
                held -= shelf.chunk.size
                shelf.is_closed = True
                self._drain(place, shelf)
        self._context.hold(sum(shelf.size for shelf in shelves.values()))

    def _settle(self) -> None:
        """Write closed chunks that could not be written before."""
        for place, shelf in self._kept.shelves.items():
            self._drain(place, shelf)

    def _write(self, place: TopicPartition, shelf: Shelf) -> None:
        """Write a closed chunk, or set its end to that of an earlier attempt."""
        chunk = shelf.chunk
        end = self._write_files(place, chunk)
        if end is None:
            shelf.chunk = self._empty_chunk()
            shelf.is_closed = False
            return
        chunk.wanted_end = end
        shelf.waiting.extendleft(reversed(chunk.cut(end)))
        # If the earlier attempt had read further, records up to its end are added first.
        shelf.is_closed = chunk.is_full(self._rules)

    def _write_files(self, place: TopicPartition, chunk: Chunk) -> int | None:
        """Write the objects of a chunk; return the end of an earlier attempt if it differs."""
        for file in chunk.files():
            key = self._name(place, file.folder, file.start)
            metadata = {END: str(chunk.end), RECORDS: file.digest()}
            if self._put(key, file, metadata):
                continue
            there = self._kept.store.find(key)
            if there is None:
                raise RetriableError(f"{key} was there, and is gone")
            end = self._end_of(key, there)
            if end != chunk.end and chunk.wanted_end is None and end > file.start:
                return end
            if end != chunk.end or there.get(RECORDS) != metadata[RECORDS]:
                raise ConnectorError(
                    f"{key} holds other records of these offsets; if the topic was recreated, "
                    "move the old files, or give another topics.dir"
                )
        return None

    def _end_of(self, key: str, metadata: Mapping[str, str]) -> int:
        text = metadata.get(END, "")
        if not text.isascii() or not text.isdigit() or len(text) > 19:
            raise ConnectorError(
                f"{key} is there and was not written by this sink: move it, or give another "
                "topics.dir"
            )
        return int(text)

    def _put(self, key: str, file: File, metadata: Mapping[str, str]) -> bool:
        store = self._kept.store
        body = self._format.write([entry.payload for entry in file.entries])
        part_bytes = self._parsed["s3.part.size"]
        if len(body) <= part_bytes:
            return store.put(key, body, metadata)
        upload = store.begin(key, metadata)
        try:
            tags = [
                store.put_part(key, upload, number, body[start : start + part_bytes])
                for number, start in enumerate(range(0, len(body), part_bytes), start=1)
            ]
            is_made = store.complete(key, upload, tags)
        except ConnectorError:
            self._abort(key, upload)
            raise
        if not is_made:
            self._abort(key, upload)
        return is_made

    def _abort(self, key: str, upload: str) -> None:
        # The next start aborts what cannot be aborted now.
        with suppress(ConnectorError):
            self._kept.store.abort(key, upload)

    def _abort_leftovers(self, places: Sequence[TopicPartition]) -> None:
        """Abort uploads of these partitions that a killed owner has begun."""
        for topic in sorted({place.topic for place in places}):
            numbers = {place.partition for place in places if place.topic == topic}
            try:
                begun = self._kept.store.begun(f"{self._parsed['topics.dir']}/{topic}/")
            except RetriableError:
                raise
            except ConnectorError as error:
                # To list them needs a further right, which is optional for a sink.
                self._context.log(f"uploads that were never ended stay in the bucket: {error}")
                return
            for key, upload in begun:
                if self._partition_of(topic, key) in numbers:
                    self._abort(key, upload)

    def _partition_of(self, topic: str, key: str) -> int | None:
        delimiter = self._parsed["file.delim"]
        start, _, rest = key.rpartition("/")[2].partition(f"{topic}{delimiter}")
        number = rest.partition(delimiter)[0]
        return int(number) if not start and number.isascii() and number.isdigit() else None

    def _name(self, place: TopicPartition, folder: str, offset: int) -> str:
        parsed = self._parsed
        number = str(offset).zfill(parsed["filename.offset.zero.pad.width"])
        name = parsed["file.delim"].join((place.topic, str(place.partition), number))
        return f"{parsed['topics.dir']}/{folder}/{name}{self._format.extension}"

    def _empty_chunk(self) -> Chunk:
        return Chunk(opened_ms=int(self._clock() * 1000))
