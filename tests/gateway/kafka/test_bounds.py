"""Where partitions begin and end, asked of a broker of ours for many of them at once."""

from collections.abc import Iterator

import pytest

from gateway.kafka.admin_calls import AdminCalls
from gateway.kafka.bounds import at_time, bounds
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, Place
from tests.fakes.broker_thread import broker_beside

pytestmark = pytest.mark.slow

FIRST, EMPTY = (Place(topic="orders", partition=index) for index in (0, 1))
CLICKS = Place(topic="clicks", partition=0)
ABSENT = [Place(topic="nothing", partition=0), Place(topic="orders", partition=9)]
SECONDS = (1_700_000_000_000, 1_700_000_001_000, 1_700_000_002_000)


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminCalls]:
    folder = tmp_path_factory.mktemp("broker")
    with broker_beside(folder, topics={"orders": 2, "clicks": 1}) as broker:
        connection = Connection(bootstrap=broker.bootstrap, timeout_s=5)
        producer = TopicWriter(connection, "orders")
        for written_ms in SECONDS:
            producer.send(NewRecord(value=b"x", partition=0, timestamp_ms=written_ms))
        producer.flush()
        yield AdminCalls(connection)


def test_partitions_of_several_topics_are_told_at_once(calls: AdminCalls) -> None:
    found = bounds(calls, [FIRST, EMPTY, CLICKS])

    assert found == {FIRST: (0, 3), EMPTY: (0, 0), CLICKS: (0, 0)}


def test_what_is_not_there_does_not_hide_what_is(calls: AdminCalls) -> None:
    assert bounds(calls, [FIRST, *ABSENT]) == {FIRST: (0, 3)}


def test_nothing_is_asked_for_nothing(calls: AdminCalls) -> None:
    assert bounds(calls, []) == {}


def test_a_time_is_the_first_record_from_then_on_or_none(calls: AdminCalls) -> None:
    assert at_time(calls, [FIRST, EMPTY], SECONDS[1]) == {FIRST: 1, EMPTY: None}
    assert at_time(calls, [FIRST], SECONDS[2] + 1) == {FIRST: None}


def test_a_cluster_that_is_away_is_a_failure() -> None:
    away = AdminCalls(Connection(bootstrap="127.0.0.1:1", timeout_s=2))

    with pytest.raises(KafkaFailure, match="no broker answers there"):
        bounds(away, [FIRST])
