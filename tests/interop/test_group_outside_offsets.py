"""Members of a group that keep their offsets elsewhere: they seek, by number and by time.

They commit nothing, so that the group remembers nothing of them, and read exactly from where they
went.
"""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import aiokafka
import kafka
import pytest
from confluent_kafka import OFFSET_END, OFFSET_INVALID, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.homes import shared_bootstrap
from tests.oracles.confluent_client import QUIET, SECONDS, create_topic
from tests.suite.shared import unique_name

pytestmark = [pytest.mark.interop, pytest.mark.slow]

# Each process writes its own.
TOPIC = unique_name("kept-outside", str(os.getpid()))
PARTITIONS = 3
RECORDS = 200
# Records are a second apart; partition 1 begins and ends half an hour later than the others.
BORN_MS = 1_700_000_000_000
STEP_MS = 1_000
LATER_MS = {0: 0, 1: 1_800_000, 2: 0}
POLL_SECONDS = 0.2
# How librdkafka says that nothing is committed; others say None.
NOWHERE = OFFSET_INVALID

Offsets = Mapping[int, int]


class Member(Protocol):
    """A member that owns every partition; a time that no record has reached is the end."""

    def at_time(self, ms: int) -> dict[int, int]: ...
    def seek(self, offsets: Offsets) -> None: ...
    def read(self) -> list[tuple[int, int]]: ...
    def committed(self) -> list[int]: ...


class Confluent:
    def __init__(self, bootstrap: str, group: str, protocol: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": protocol,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **QUIET,
            }
        )
        self._consumer.subscribe([TOPIC])

    def close(self) -> None:
        self._consumer.close()

    def at_time(self, ms: int) -> dict[int, int]:
        asked = [TopicPartition(TOPIC, place, ms) for place in range(PARTITIONS)]
        return {
            found.partition: RECORDS if found.offset == OFFSET_END else found.offset
            for found in self._consumer.offsets_for_times(asked, SECONDS)
        }

    def seek(self, offsets: Offsets) -> None:
        for place, offset in offsets.items():
            self._consumer.seek(TopicPartition(TOPIC, place, offset))

    def read(self) -> list[tuple[int, int]]:
        messages = self._consumer.consume(RECORDS, POLL_SECONDS)
        assert not [message.error() for message in messages if message.error()]
        return [(message.partition() or 0, message.offset() or 0) for message in messages]

    def committed(self) -> list[int]:
        asked = [TopicPartition(TOPIC, place) for place in range(PARTITIONS)]
        return [found.offset for found in self._consumer.committed(asked, SECONDS)]


class KafkaPython:
    def __init__(self, bootstrap: str, group: str) -> None:
        self._consumer = kafka.KafkaConsumer(
            TOPIC,
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        self._places = [kafka.TopicPartition(TOPIC, place) for place in range(PARTITIONS)]

    def close(self) -> None:
        self._consumer.close()

    def at_time(self, ms: int) -> dict[int, int]:
        found = self._consumer.offsets_for_times(dict.fromkeys(self._places, ms))
        return {place.partition: told.offset if told else RECORDS for place, told in found.items()}

    def seek(self, offsets: Offsets) -> None:
        for place, offset in offsets.items():
            self._consumer.seek(self._places[place], offset)

    def read(self) -> list[tuple[int, int]]:
        found = self._consumer.poll(int(POLL_SECONDS * 1000))
        return [(record.partition, record.offset) for rows in found.values() for record in rows]

    def committed(self) -> list[int]:
        return [
            NOWHERE if (at := self._consumer.committed(p)) is None else at for p in self._places
        ]


class Aio:
    def __init__(self, bootstrap: str, group: str) -> None:
        self._runner = asyncio.Runner()
        self._consumer = self._runner.run(self._started(bootstrap, group))
        self._places = [aiokafka.TopicPartition(TOPIC, place) for place in range(PARTITIONS)]

    @staticmethod
    async def _started(bootstrap: str, group: str) -> Any:
        consumer = aiokafka.AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        return consumer

    def close(self) -> None:
        self._runner.run(self._consumer.stop())
        self._runner.close()

    def at_time(self, ms: int) -> dict[int, int]:
        asked = dict.fromkeys(self._places, ms)
        found = self._runner.run(self._consumer.offsets_for_times(asked))
        return {place.partition: told.offset if told else RECORDS for place, told in found.items()}

    def seek(self, offsets: Offsets) -> None:
        async def seek() -> None:
            for place, offset in offsets.items():
                self._consumer.seek(self._places[place], offset)

        self._runner.run(seek())

    def read(self) -> list[tuple[int, int]]:
        found = self._runner.run(self._consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000)))
        return [(record.partition, record.offset) for rows in found.values() for record in rows]

    def committed(self) -> list[int]:
        found = [self._runner.run(self._consumer.committed(place)) for place in self._places]
        return [NOWHERE if offset is None else offset for offset in found]


MEMBERS: dict[str, Callable[[str, str], Any]] = {
    "confluent-classic": lambda bootstrap, group: Confluent(bootstrap, group, "classic"),
    "confluent-consumer": lambda bootstrap, group: Confluent(bootstrap, group, "consumer"),
    "kafka-python": KafkaPython,
    "aiokafka": Aio,
}


def until(is_done: Callable[[], Any]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_done():
        assert time.monotonic() < deadline, f"nothing came of it within {SECONDS} s"


def first_of_each(reader: Member) -> dict[int, int]:
    """Read until every partition told something; return the first offset of each."""
    first: dict[int, int] = {}
    seen: defaultdict[int, list[int]] = defaultdict(list)

    def has_all() -> bool:
        for place, offset in reader.read():
            first.setdefault(place, offset)
            seen[place].append(offset)
        return len(first) == PARTITIONS

    until(has_all)
    for offsets in seen.values():
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
    return first


def first_of(reader: Member, count: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []

    def has_all() -> bool:
        found.extend(reader.read())
        return len(found) >= count

    until(has_all)
    return found


@contextmanager
def member(name: str, bootstrap: str) -> Iterator[Member]:
    with ExitStack() as stack:
        made = MEMBERS[name](bootstrap, f"outside-{name}")
        stack.callback(made.close)
        # Whoever seeks before its client knows where it stands is taken back to the start.
        assert first_of_each(made) == dict.fromkeys(range(PARTITIONS), 0)
        yield made


@pytest.fixture(scope="module")
def bootstrap() -> str:
    address = shared_bootstrap()
    # The records are years old, and retention takes those of a default topic after minutes.
    config = {"retention.ms": "-1"}
    create_topic(AdminClient({"bootstrap.servers": address, **QUIET}), TOPIC, PARTITIONS, config)
    producer = Producer({"bootstrap.servers": address, **QUIET})
    for place in range(PARTITIONS):
        for number in range(RECORDS):
            born = BORN_MS + LATER_MS[place] + number * STEP_MS
            producer.produce(TOPIC, b"%d" % number, partition=place, timestamp=born)
    assert producer.flush(SECONDS) == 0
    return address


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_reads_from_where_it_went(name: str, bootstrap: str) -> None:
    with member(name, bootstrap) as reader:
        kept = {0: 17, 1: 0, 2: RECORDS - 1}
        reader.seek(kept)

        assert first_of_each(reader) == kept
        # Half a second after record 29 is the next one; the later partition is before its first.
        at = reader.at_time(BORN_MS + 29 * STEP_MS + STEP_MS // 2)
        assert at == {0: 30, 1: 0, 2: 30}
        reader.seek(at)
        assert first_of_each(reader) == at

        # Where every record is older, the end: nothing is read there, and nothing is wrong.
        late = reader.at_time(BORN_MS + LATER_MS[1])
        assert late == {0: RECORDS, 1: 0, 2: RECORDS}
        reader.seek(late | {1: RECORDS - 2})
        assert first_of(reader, 2) == [(1, RECORDS - 2), (1, RECORDS - 1)]

        assert reader.committed() == [NOWHERE] * PARTITIONS
