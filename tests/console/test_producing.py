"""One record written through a real broker, and how long a request can wait for one."""

import socket
import time
from collections.abc import Callable

import pytest

from console import producing
from console.producing import record_at
from gateway.access.turns import TooBusy, Turns
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.readers.admission import admit
from gateway.kafka.values import NewRecord, NewTopic, Record
from tests.fakes.readers import FakeReader
from tests.interop.homes import shared_bootstrap

RECORD = NewRecord(key=b"k\0", value=None, headers=(("h", b""), ("n", None)), timestamp_ms=7)


def read(bootstrap: str, topic: str, partition: int, offset: int) -> Record | None:
    return record_at(admit(FakeReader(), [topic]), bootstrap, topic, partition, offset)


@pytest.mark.slow
def test_a_record_is_where_the_answer_says(unique: Callable[[str], str]) -> None:
    bootstrap, topic = shared_bootstrap(), unique("written")
    configs = {"message.timestamp.before.max.ms": str(2**63 - 1), "max.message.bytes": "5000"}
    Admin(Connection(bootstrap=bootstrap)).create(
        [NewTopic(name=topic, partitions=3, configs=configs)]
    )

    first = producing.write(bootstrap, topic, RECORD)
    second = producing.write(bootstrap, topic, RECORD)
    found = read(bootstrap, topic, second.partition, second.offset)

    assert (second.partition, second.offset) == (first.partition, first.offset + 1)
    assert found is not None
    assert (found.key, found.value, found.headers) == (b"k\0", None, (("h", b""), ("n", None)))
    assert found.timestamp_ms == 7
    with pytest.raises(KafkaFailure, match="MESSAGE_TOO_LARGE"):
        producing.write(bootstrap, topic, NewRecord(value=b"x" * 6000))
    with pytest.raises(KafkaFailure, match="OFFSET_OUT_OF_RANGE"):
        read(bootstrap, topic, second.partition, 1000)


@pytest.mark.slow
def test_brokers_that_say_nothing_hold_a_request_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(producing, "WRITE_S", 0.5)
    monkeypatch.setattr(producing, "READ_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()

        with pytest.raises(KafkaFailure):
            producing.write(address, "orders", RECORD)
        assert read(address, "orders", 0, 0) is None

    assert time.monotonic() - begun < 10


def test_who_finds_all_places_taken_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Turns(places=1, queue=0, wait_s=0.01, what="records are being written or read here")
    monkeypatch.setattr(producing, "TURNS", one)

    with one.turn(), pytest.raises(TooBusy):
        producing.write("127.0.0.1:1", "orders", RECORD)
    with one.turn(), pytest.raises(TooBusy):
        read("127.0.0.1:1", "orders", 0, 0)
