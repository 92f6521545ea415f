"""What a job is offered in tests: a running cluster, and a group that is a dictionary."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from connectors.plugins.spark import frames
from connectors.sdk.errors import DataError, RetriableError
from connectors.sdk.records import JobBatch, RawRecord, TopicPartition
from connectors.sdk.testing import MemoryContext

# Of every record that is sent.
SENT_MS = 1_700_000_000_000


@dataclass(slots=True, kw_only=True)
class JobContext(MemoryContext):
    """A context over the shared cluster, whose group is a dictionary."""

    bootstrap: str
    # The first topic; `topics` has those beside it.
    topic: str
    topics: tuple[str, ...] = ()
    begins_at_end: bool = False
    group: str = "connect-test"
    told: dict[TopicPartition, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    batches: list[JobBatch] = field(default_factory=list)
    refused: list[RawRecord] = field(default_factory=list)
    is_tolerant: bool = True
    # How often the lease is asked for until it is lost.
    asked: int = 10_000
    is_group_away: bool = False

    # What the task has noted, and the ids that topics are said to have, where not their own.
    noted: Mapping[str, Any] | None = None
    ids: dict[str, str] = field(default_factory=dict)

    def places(self) -> Sequence[TopicPartition]:
        return sorted(self.bounds())

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        client = AdminClient({"bootstrap.servers": self.bootstrap})
        found = client.describe_topics(TopicCollection(list(topics)))
        # As a slice writes them.
        ids = {
            name: str(future.result().topic_id).replace("+", "-").replace("/", "_")
            for name, future in found.items()
        }
        return {**ids, **self.ids}

    def note(self) -> Mapping[str, Any] | None:
        return self.noted

    def keep_note(self, note: Mapping[str, Any]) -> None:
        self.require_lease()
        self.noted = json.loads(json.dumps(note))

    def bounds(self) -> Mapping[TopicPartition, tuple[int, int]]:
        client = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "bounds"})
        ends = {
            TopicPartition(topic=topic, partition=number): client.get_watermark_offsets(
                Place(topic, number)
            )
            for topic in (self.topic, *self.topics)
            for number in client.list_topics(topic).topics[topic].partitions
        }
        client.close()
        return ends

    def committed(self) -> Mapping[TopicPartition, int]:
        return self.told

    def require_lease(self) -> None:
        self.asked -= 1
        if self.asked < 0:
            raise RetriableError("the worker has ended")

    def refuse(self, record: RawRecord, error: DataError) -> None:
        if not self.is_tolerant:
            raise error
        self.refused.append(record)

    def settle(self) -> None: ...

    def count(self, **counted: int) -> None:
        for name, number in counted.items():
            self.counts[name] = self.counts.get(name, 0) + number

    def note_batch(self, batch: JobBatch) -> None:
        self.batches.append(batch)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        self.told |= {} if self.is_group_away else offsets
        return not self.is_group_away


def end_in_the_middle(monkeypatch: pytest.MonkeyPatch, run: Callable[[], None]) -> None:
    """Run a slice whose process ends as Spark is asked to read a batch."""

    def end(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as ending:
        ending.setattr(frames, "records", end)
        with pytest.raises(KeyboardInterrupt):
            run()


def send(context: JobContext, *values: object, partition: int = 0, topic: str = "") -> None:
    producer = Producer({"bootstrap.servers": context.bootstrap})
    for value in values:
        raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        producer.produce(topic or context.topic, value=raw, partition=partition, timestamp=SENT_MS)
    assert producer.flush(30) == 0
