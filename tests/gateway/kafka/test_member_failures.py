"""What a member of a group has read when something fails beside it."""

from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError

from gateway.kafka import clients
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.member import Member, Reset, Subscription
from gateway.kafka.values import Place

PLACES = (Place(topic="odd", partition=0), Place(topic="orders", partition=0))


class Message:
    """A record of a topic, or an error there."""

    def __init__(self, topic: str, offset: int, code: int | None = None) -> None:
        self._topic, self._offset, self._code = topic, offset, code

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def error(self) -> KafkaError | None:
        return None if self._code is None else KafkaError(self._code)

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_NOT_AVAILABLE, -1

    def headers(self) -> None:
        return None

    def key(self) -> bytes:
        return b"k"

    value = key


class Library:
    """A client that has these batches, one after the other."""

    def __init__(self, *batches: Sequence[Message]) -> None:
        self._batches = list(batches)

    def assign(self, _places: object) -> None:
        """Ignore the assignment."""

    def consume(self, number: int, _wait_s: float) -> list[Any]:
        if not self._batches:
            return []
        batch = list(self._batches.pop(0))
        if batch[number:]:
            self._batches.insert(0, batch[number:])
        return batch[:number]

    def close(self) -> None:
        """Leave nothing."""


def member(monkeypatch: pytest.MonkeyPatch, *batches: Sequence[Message]) -> Member:
    monkeypatch.setattr(clients, "Consumer", lambda _settings: Library(*batches))
    found = Member(
        Connection(bootstrap="127.0.0.1:1"), "g", reset=Reset.EARLIEST, commits_itself=True
    )
    found.subscribe(Subscription(places=PLACES))
    return found


def offsets(found: Member, *, min_bytes: int = 1) -> list[int]:
    taken = found.take(max_bytes=1_000_000, min_bytes=min_bytes, wait_s=0.01)
    return [record.offset for record in taken]


def test_records_that_come_with_a_failure_of_another_topic_are_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
    found = member(
        monkeypatch, [Message("orders", 0), Message("odd", 0, denied), Message("orders", 1)]
    )

    with pytest.raises(KafkaFailure):
        offsets(found)

    assert offsets(found) == [0, 1]


def test_records_that_were_found_before_a_failure_are_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
    found = member(
        monkeypatch,
        [Message("orders", 0)],
        [],
        [Message("odd", 0, denied)],
        [Message("orders", 1)],
    )

    with pytest.raises(KafkaFailure):
        offsets(found, min_bytes=1_000)

    assert offsets(found, min_bytes=1_000) == [0, 1]
