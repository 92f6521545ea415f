"""A slice of a source over a cluster in memory."""

from collections.abc import Mapping
from typing import Any

from connectors.runtime import source_slice
from connectors.runtime.ports import Ending, SliceEnd, TaskSpec, Verdict
from connectors.sdk.connector import SourceConnector
from connectors.sdk.errors import RetriableError
from gateway.kafka.errors import failure
from gateway.kafka.values import CLUSTER_DEFAULT
from tests.fakes.slice_plugins import list_source, plain_steps
from tests.fakes.slice_ports import FakePorts


def run(
    plugin: type[SourceConnector],
    fakes: FakePorts,
    config: Mapping[str, str] | None = None,
    **spec: Any,
) -> SliceEnd:
    told = TaskSpec(connector="c", plugin=plugin, config=config or {}, **spec)
    return source_slice.run(told, fakes.ports, plain_steps)


def stored(fakes: FakePorts) -> list[int]:
    return [offset["at"] for offset in fakes.offsets.stored.values()]


def test_a_slice_produces_all_and_stores_the_last_offset() -> None:
    fakes = FakePorts()
    plugin = list_source(["a", "b", "hidden", "c"])

    end = run(plugin, fakes)

    assert end.ending is Ending.IDLE
    assert fakes.wire.values("out") == [b"a", b"b", b"c"]
    assert stored(fakes) == [4]
    assert (end.figures["records_written"], end.figures["records_filtered"]) == (3, 1)
    assert end.topics == {"out"}


def test_a_task_learns_what_is_stored() -> None:
    fakes = FakePorts()
    plugin = list_source(["a", "hidden", "b"])

    run(plugin, fakes)

    assert plugin.committed == ["a", "hidden", "b"]  # type: ignore[attr-defined]


def test_an_offset_without_a_record_is_stored_behind_all_records() -> None:
    fakes = FakePorts()
    plugin = list_source(["a", "b"], passed=7)

    run(plugin, fakes)

    assert fakes.wire.values("out") == [b"a", b"b"]
    assert stored(fakes) == [7]
    assert plugin.committed == ["a", "b"]  # type: ignore[attr-defined]


def test_a_source_without_records_learns_that_its_offset_is_stored_and_is_idle() -> None:
    fakes = FakePorts()
    plugin = list_source([], passed=7)

    end = run(plugin, fakes)

    assert (end.ending, end.idle_slices) == (Ending.IDLE, 1)
    assert stored(fakes) == [7]
    assert plugin.commits > 0  # type: ignore[attr-defined]


def test_nothing_is_stored_of_a_batch_that_the_cluster_has_not_taken() -> None:
    fakes = FakePorts()
    fakes.wire.refuse = lambda topic, record: (
        failure("NOT_ENOUGH_REPLICAS", topic) if record.value == b"c" else None
    )

    end = run(list_source(["a", "b", "c", "d"]), fakes, retries=2)

    assert (end.ending, end.retries) == (Ending.RETRY, 3)
    assert stored(fakes) in ([], [2])


def test_a_record_that_the_cluster_refuses_for_good_fails_the_task() -> None:
    fakes = FakePorts()
    fakes.wire.refuse = lambda topic, record: failure("MESSAGE_TOO_LARGE", topic)

    end = run(list_source(["a"]), fakes)

    assert end.ending is Ending.FAILED
    assert "KAFKA_PRODUCE failed" in end.trace


def test_a_tolerant_source_leaves_out_what_cannot_be_produced_or_converted() -> None:
    fakes = FakePorts()
    fakes.wire.refuse = lambda topic, record: (
        failure("MESSAGE_TOO_LARGE", topic) if record.value == b"b" else None
    )

    end = run(
        list_source(["a", "b", "bad", "c"]),
        fakes,
        {"errors.tolerance": "all", "errors.log.enable": "true"},
    )

    assert fakes.wire.values("out") == [b"a", b"c"]
    assert stored(fakes) == [4]
    assert end.figures["records_skipped"] == end.figures["records_lost"] == 2
    assert sorted(fakes.figures.causes().values()) == [1, 1]
    assert any("VALUE_CONVERTER" in text for _, text in fakes.log.lines)


def test_a_slice_that_lost_its_lease_stores_nothing() -> None:
    fakes = FakePorts()
    fakes.offsets.is_lost = True

    end = run(list_source(["a"]), fakes)

    assert end.ending is Ending.LOST
    assert stored(fakes) == []


def test_a_source_that_is_away_is_asked_again_by_the_next_slice() -> None:
    def before_poll(at: int) -> None:
        if at == 2:
            raise RetriableError("the source is away", wait_s=7.0)

    fakes = FakePorts()

    end = run(list_source(["a", "b", "c"], before_poll=before_poll), fakes)

    assert (end.ending, end.wait_s) == (Ending.RETRY, 7.0)
    assert end.trace == ""


def test_where_others_wait_a_quiet_source_ends_at_once() -> None:
    fakes = FakePorts(Verdict.YIELD)

    end = run(list_source([]), fakes, idle_slices=2)

    assert fakes.clock.waits == []
    assert (end.ending, end.wait_s, end.idle_slices) == (Ending.IDLE, 0.8, 3)


def test_where_nobody_waits_a_quiet_source_is_looked_at_each_second() -> None:
    fakes = FakePorts()

    end = run(list_source([]), fakes)

    assert max(fakes.clock.waits) < 1
    assert end.wait_s == 0


def test_topics_are_created_as_their_group_says() -> None:
    fakes = FakePorts()
    config = {
        "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "-1",
        "topic.creation.groups": "compacted",
        "topic.creation.compacted.include": "out.*",
        "topic.creation.compacted.cleanup.policy": "compact",
    }

    run(list_source(["a"], topic="out-1"), fakes, config)
    run(list_source(["a", "b"], topic="plain"), fakes, config)

    made = {topic.name: (topic.partitions, dict(topic.configs)) for topic in fakes.wire.created}
    assert made == {"out-1": (2, {"cleanup.policy": "compact"}), "plain": (2, {})}


def test_a_task_that_is_told_to_stop_stores_what_is_in_the_cluster() -> None:
    fakes = FakePorts(Verdict.KEEP, Verdict.KEEP, Verdict.STOP)

    end = run(list_source(["a"] * 1000), fakes)

    assert end.ending is Ending.STOPPED
    assert stored(fakes) == [len(fakes.wire.values("out"))]


def test_a_missing_topic_is_created_if_brokers_and_the_author_may() -> None:
    fakes = FakePorts()

    run(list_source(["a"]), fakes)
    run(list_source(["a", "b"]), fakes)

    assert [(one.name, one.partitions) for one in fakes.wire.created] == [("out", CLUSTER_DEFAULT)]
    assert fakes.wire.values("out") == [b"a", b"b"]


def test_a_deleted_topic_is_created_again_by_the_same_rule() -> None:
    fakes = FakePorts()
    run(list_source(["a"]), fakes)
    del fakes.wire.logs["out"]
    gone = failure("UNKNOWN_TOPIC_OR_PARTITION", "out", "it was deleted")
    fakes.wire.refuse = lambda topic, _: None if topic in fakes.wire.logs else gone

    ends = [run(list_source(["a", "b"]), fakes).ending for _ in range(2)]

    assert ends == [Ending.RETRY, Ending.IDLE]
    assert fakes.wire.values("out") == [b"b"]


def test_an_author_who_may_not_create_topics_gets_none() -> None:
    fakes = FakePorts()
    fakes.creation_refusal = "topic out does not exist, and user ann may not create it"

    end = run(list_source(["a"]), fakes)

    assert (end.ending, fakes.wire.created, stored(fakes)) == (Ending.FAILED, [], [])
    assert end.trace.startswith("ConnectorError: topic out does not exist, and user ann may not")
    fakes.wire.logs["out"] = [[]]
    assert run(list_source(["a"]), fakes).ending is Ending.IDLE


def test_a_missing_topic_is_waited_for_where_brokers_create_none() -> None:
    fakes = FakePorts()
    fakes.wire.creates = False

    end = run(list_source(["a"]), fakes)

    assert (end.ending, fakes.wire.created) == (Ending.RETRY, [])
    assert "brokers create none (auto.create.topics.enable=false)" in fakes.log.lines[-1][1]
