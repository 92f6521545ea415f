"""A stream's reader, asked as Spark asks it, against a broker of ours; no Spark runs."""

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from tests.extras import requires
from tests.fakes.broker_thread import BesideBroker, broker_beside

pytestmark = [requires("spark"), pytest.mark.slow]

Shown = dict[str, dict[str, int]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BesideBroker]:
    with broker_beside(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


class Stream:
    """What Spark does with a reader, step by step."""

    def __init__(self, broker: BesideBroker, topic: str, **options: str) -> None:
        from spark_integration.datasource.options import parse_options  # noqa: PLC0415
        from spark_integration.datasource.stream_reader import SamsaStreamReader  # noqa: PLC0415

        given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **options}
        self.now = 0.0
        self.reader = SamsaStreamReader(
            parse_options(given, is_stream=True), clock=lambda: self.now
        )

    def latest(self, start: Mapping[str, Any]) -> Shown:
        return self.reader.latestOffset(dict(start), self.reader.getDefaultReadLimit())

    def offsets(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[tuple[int, int]]:
        """Partition and offset of all that the tasks of one batch read, as copies of the reader."""
        found = []
        copy = pickle.loads(pickle.dumps(self.reader))  # noqa: S301 (our own)
        for task in self.reader.partitions(dict(start), dict(end)):
            for batch in copy.read(task):
                found += [(row["partition"], row["offset"]) for row in batch.to_pylist()]
        return found


@pytest.fixture
def stream(broker: BesideBroker) -> Iterator[Callable[..., Stream]]:
    made: list[Stream] = []

    def make(topic: str, **options: str) -> Stream:
        made.append(Stream(broker, topic, **options))
        return made[-1]

    yield make
    for one in made:
        one.reader.stop()
    from spark_integration.datasource.batch_reader import CLUSTERS  # noqa: PLC0415

    while CLUSTERS:
        CLUSTERS.popitem()[1].close()


def create(broker: BesideBroker, name: str, *, partitions: int = 1) -> str:
    broker.call(lambda: broker.running.twin.create_topic(name, partitions=partitions))
    return name


def fill(broker: BesideBroker, topic: str, count: int, *, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, value=b"%d" % number, partition=partition)
    producer.flush()


def at(topic: str, *offsets: int) -> Shown:
    return {topic: {str(number): offset for number, offset in enumerate(offsets)}}


def test_where_a_stream_began_is_kept_under_its_name(
    broker: BesideBroker, stream: Callable[..., Stream]
) -> None:
    topic = create(broker, "kept")
    fill(broker, topic, 100)
    began = stream(topic, queryId="kept").reader.initialOffset()
    fill(broker, topic, 10)
    # Batch 0 is planned and fails; more comes before the restart.
    fill(broker, topic, 90)

    again = stream(topic, queryId="kept")
    another = stream(topic, queryId="another")

    assert again.reader.initialOffset() == again.reader.initialOffset() == began == at(topic, 100)
    assert len(again.offsets(began, at(topic, 110))) == 10
    assert another.reader.initialOffset() == at(topic, 200)


def test_recreated_checkpoint_is_another_stream(
    broker: BesideBroker, stream: Callable[..., Stream], tmp_path: Path
) -> None:
    topic = create(broker, "checkpoint")
    metadata = tmp_path / "metadata"
    metadata.write_text(json.dumps({"id": "one"}), encoding="utf-8")
    began = stream(topic, checkpointLocation=str(tmp_path)).reader.initialOffset()
    fill(broker, topic, 5)
    same = stream(topic, checkpointLocation=tmp_path.as_uri())
    again = stream(topic, checkpointLocation=str(tmp_path)).reader.initialOffset()
    metadata.write_text(json.dumps({"id": "two"}), encoding="utf-8")

    anew = stream(topic, checkpointLocation=str(tmp_path)).reader.initialOffset()

    assert began == again == at(topic, 0)
    assert anew == same.reader.initialOffset() == at(topic, 5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"t": {"0": -1}}'},
        {"startingTimestamp": "5"},
        {"startingOffsetsByTimestamp": '{"t": {"0": 5}}'},
    ],
)
def test_a_beginning_that_moves_needs_a_name(
    stream: Callable[..., Stream], options: dict[str, str]
) -> None:
    from spark_integration.datasource.errors import OptionRefused  # noqa: PLC0415

    with pytest.raises(OptionRefused, match=r'\.option\("checkpointLocation".*queryId'):
        stream("t", **options)
    stream("t", queryId="named", **options)
    stream("t", startingOffsets="earliest")
    stream("t", startingOffsets='{"t": {"0": 7}}')


def test_batches_go_as_far_as_the_limit_until_all_is_read(
    broker: BesideBroker, stream: Callable[..., Stream]
) -> None:
    topic = create(broker, "limited", partitions=2)
    fill(broker, topic, 30)
    fill(broker, topic, 10, partition=1)
    one = stream(topic, startingOffsets="earliest", maxOffsetsPerTrigger="20")
    at_start = begin = one.reader.initialOffset()
    seen = []

    while (end := one.latest(begin)) != begin:
        found = one.offsets(begin, end)
        assert len(found) <= 20
        seen += found
        begin = end

    assert at_start == at(topic, 0, 0)
    assert sorted(seen) == [(0, n) for n in range(30)] + [(1, n) for n in range(10)]
    assert one.reader.reportLatestOffset() == at(topic, 30, 10)


def test_a_limit_of_bytes_is_kept_by_what_records_weigh(
    broker: BesideBroker, stream: Callable[..., Stream]
) -> None:
    topic = create(broker, "heavy")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 10})
    for _ in range(100):
        producer.produce(topic, value=b"x" * 1000)
    producer.flush()
    one = stream(topic, startingOffsets="earliest", maxBytesPerTrigger="20000")

    end = one.latest(at(topic, 0))

    assert 15 <= end[topic]["0"] <= 20


def test_few_records_wait_for_more_or_for_the_longest_delay(
    broker: BesideBroker, stream: Callable[..., Stream]
) -> None:
    topic = create(broker, "few")
    fill(broker, topic, 5)
    one = stream(
        topic, startingOffsets="earliest", minOffsetsPerTrigger="10", maxTriggerDelay="60s"
    )

    held = one.latest(at(topic, 0))
    one.now = 61
    late = one.latest(at(topic, 0))

    assert (held, late) == (at(topic, 0), at(topic, 5))
    assert one.latest(late) == late
    fill(broker, topic, 10)
    assert one.latest(late) == at(topic, 15)


def test_available_now_ends_at_what_was_there_when_it_began(
    broker: BesideBroker, stream: Callable[..., Stream]
) -> None:
    topic = create(broker, "now")
    fill(broker, topic, 8)
    one = stream(topic, startingOffsets="earliest")
    one.reader.prepareForTriggerAvailableNow()
    fill(broker, topic, 8)

    end = one.latest(one.reader.initialOffset())

    assert end == at(topic, 8)
    assert one.latest(end) == end
    # A run before this one read further.
    assert one.latest(at(topic, 12)) == at(topic, 12)


def test_new_partitions_are_read_from_their_beginning(
    broker: BesideBroker, stream: Callable[..., Stream]
) -> None:
    topic = create(broker, "grown")
    fill(broker, topic, 3)
    one = stream(topic, queryId="grown")
    begin = one.reader.initialOffset()
    from confluent_kafka.admin import NewPartitions  # noqa: PLC0415

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result()
    fill(broker, topic, 4, partition=1)

    end = one.latest(begin)

    assert (begin, end) == (at(topic, 3), at(topic, 3, 4))
    assert one.offsets(begin, end) == [(1, n) for n in range(4)]


def test_new_topics_of_a_pattern_are_read_and_ours_are_not(
    broker: BesideBroker, stream: Callable[..., Stream]
) -> None:
    from spark_integration.datasource.options import parse_options  # noqa: PLC0415
    from spark_integration.datasource.stream_reader import SamsaStreamReader  # noqa: PLC0415

    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribePattern": "^pat|^__samsa",
        "queryId": "pattern",
    }
    reader = SamsaStreamReader(parse_options(options, is_stream=True))
    begin = reader.initialOffset()
    create(broker, "pat-1")
    fill(broker, "pat-1", 2)

    end = reader.latestOffset(begin, reader.getDefaultReadLimit())
    reader.stop()

    assert (begin, end) == ({}, at("pat-1", 2))


def test_a_topic_that_was_deleted_fails_the_stream_or_leaves_it(
    broker: BesideBroker, stream: Callable[..., Stream]
) -> None:
    from spark_integration.datasource.errors import DataLost  # noqa: PLC0415

    topic = create(broker, "deleted")
    fill(broker, topic, 3)
    strict = stream(topic, startingOffsets="earliest")
    lax = stream(topic, startingOffsets="earliest", failOnDataLoss="false")
    begin = strict.reader.initialOffset()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result()

    with pytest.raises(DataLost, match="deleted-0 should be read"):
        strict.latest(begin)
    with pytest.raises(DataLost, match="topic deleted was deleted before 0 to 3"):
        strict.offsets(begin, at(topic, 3))
    assert lax.latest(begin) == {}
    assert lax.offsets(begin, at(topic, 3)) == []


def test_topic_recreated_between_two_runs_is_noticed(
    broker: BesideBroker, stream: Callable[..., Stream]
) -> None:
    from spark_integration.datasource.errors import DataLost  # noqa: PLC0415

    topic = create(broker, "anew")
    fill(broker, topic, 3)
    stream(topic, queryId="anew").reader.initialOffset()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result()
    create(broker, topic)
    fill(broker, topic, 20)

    with pytest.raises(DataLost, match="topic anew was deleted and recreated"):
        stream(topic, queryId="anew").latest(at(topic, 3))
    lax = stream(topic, queryId="anew", failOnDataLoss="false")
    behind = lax.latest(at(topic, 50))

    assert lax.latest(at(topic, 3)) == at(topic, 20)
    assert behind == at(topic, 20)
    assert len(lax.offsets(at(topic, 50), behind)) == 20


def test_a_range_that_was_deleted_before_it_was_read_is_a_loss(
    broker: BesideBroker, stream: Callable[..., Stream]
) -> None:
    from spark_integration.datasource.errors import DataLost  # noqa: PLC0415

    topic = create(broker, "aged")
    fill(broker, topic, 10)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_records([Place(topic, 0, 6)])[Place(topic, 0)].result()
    strict = stream(topic, startingOffsets="earliest")
    lax = stream(topic, startingOffsets="earliest", failOnDataLoss="false")

    with pytest.raises(DataLost, match="offsets 2 to 6 of aged-0 are gone"):
        strict.offsets(at(topic, 2), at(topic, 10))
    assert lax.offsets(at(topic, 2), at(topic, 10)) == [(0, n) for n in range(6, 10)]


@pytest.mark.parametrize("shown", [{"logOffset": 4}, {"t": {"zero": 1}}, 7])
def test_a_checkpoint_of_another_source_is_named(
    broker: BesideBroker, stream: Callable[..., Stream], shown: Any
) -> None:
    from spark_integration.datasource.errors import OptionRefused  # noqa: PLC0415

    topic = create(broker, f"foreign-{len(str(shown))}")
    reader = stream(topic, startingOffsets="earliest").reader

    with pytest.raises(OptionRefused, match="another source has written it"):
        reader.latestOffset(shown, reader.getDefaultReadLimit())


def test_checkpoint_of_other_topics_or_more_partitions_causes_no_silent_loss(
    broker: BesideBroker, stream: Callable[..., Stream]
) -> None:
    from spark_integration.datasource.errors import DataLost  # noqa: PLC0415

    topic = create(broker, "moved-here")
    fill(broker, topic, 3)
    strict = stream(topic, startingOffsets="earliest")
    lax = stream(topic, startingOffsets="earliest", failOnDataLoss="false")

    for shown, lost in [(at("elsewhere", 5), "elsewhere-0"), (at(topic, 1, 5), f"{topic}-1")]:
        with pytest.raises(DataLost, match=f"{lost} should be read, but no longer exist"):
            strict.latest(shown)
        assert lax.latest(shown) == at(topic, 3)
