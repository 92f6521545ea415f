"""A member of a group that commits and seeks what it wants."""

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from gateway.kafka import group_reader as module
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.group_reader import GroupReader


class Library:
    """A client with two partitions, of which the first refuses to seek."""

    def __init__(self) -> None:
        self.code: int = KafkaError._STATE  # noqa: SLF001 - a documented constant
        self.sought: list[int] = []
        self.committed: list[int] = []

    def subscribe(self, _topics: list[str]) -> None:
        pass

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition("orders", index) for index in (0, 1)]

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        self.committed += [place.partition for place in offsets]

    def seek(self, place: TopicPartition) -> None:
        if place.partition == 0:
            raise KafkaException(KafkaError(self.code))
        self.sought.append(place.partition)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.setattr(module, "Consumer", lambda _settings: made)
    return made


def reader() -> GroupReader:
    connection = Connection(bootstrap="127.0.0.1:1", client_id="of-a-test", until=Deadline(1))
    return GroupReader(connection, "billing", ["orders"])


def test_a_rewind_passes_over_a_partition_that_is_not_fetched_yet(library: Library) -> None:
    reader().rewind()

    assert (library.sought, library.committed) == ([1], [0, 1])


def test_a_rewind_that_is_refused_is_a_failure_of_the_group(library: Library) -> None:
    library.code = KafkaError.GROUP_AUTHORIZATION_FAILED

    with pytest.raises(KafkaFailure, match="group billing"):
        reader().rewind()
