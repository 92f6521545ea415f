"""Changes of connectors: who may make them, what becomes of them, and what is told of them."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from connectors import changes, models, selectors, services
from connectors.changes import By
from connectors.models import State, Target
from connectors.refusals import Conflict, Invalid, NotFound, Refused, Unfit
from connectors.sdk.records import TopicPartition
from connectors.vault import Opened
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import FULL_ADMIN, Grant, Rights
from gateway.access.operations import Kind, Operation
from tests.connectors.invented import Blackhole

pytestmark = pytest.mark.usefixtures("database")
C = "cluster-of-the-tests-0"
SOURCE = {"connector.class": "Lines", "topic": "t", "connection.password": "s3cret"}
SINK = {"connector.class": "samsa.test.blackhole", "topics": "a,b"}
CAPTURE = {
    "connector.class": "samsa.postgres.capture",
    "database.hostname": "db.invalid",
    "database.user": "u",
    "database.dbname": "shop",
    "topic.prefix": "shop",
}


def by(*grants: Grant) -> By:
    caller = Caller(kind=CallerKind.USER, name="ann", rights=Rights(grants or (FULL_ADMIN,)))
    return By(caller=caller, address="192.0.2.7")


def may(operation: Operation, kind: Kind = Kind.CONNECTOR, pattern: str = "*") -> Grant:
    return Grant(operation=operation, kind=kind, pattern=pattern)


ANN = by()


class Groups:
    """Offsets of groups in a dictionary."""

    def __init__(self) -> None:
        self.offsets: dict[str, dict[TopicPartition, int]] = {}

    def committed(self, group: str) -> Mapping[TopicPartition, int]:
        return self.offsets.get(group, {})

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        self.offsets.setdefault(group, {}).update(offsets)

    def delete(self, group: str, places: Sequence[TopicPartition]) -> None:
        for place in places:
            self.offsets[group].pop(place, None)


def row(name: str = "a") -> models.Connector:
    return models.Connector.objects.get(name=name)


def add_task(number: int = 0, **more: Any) -> models.Task:
    return models.Task.objects.create(
        connector=row(), number=number, generation=1, **{"state": State.RUNNING, **more}
    )


def test_a_new_connector_is_unassigned_and_shows_no_password() -> None:
    made = services.create(ANN, C, "a", SOURCE)

    assert made.config == SOURCE | {"name": "a", "connection.password": "[hidden]"}
    assert (made.kind, made.plugin, made.target) == ("source", "samsa.test.lines", "STARTED")
    assert selectors.status(C, "a", reader=Rights()).state == State.UNASSIGNED
    assert selectors.opened(row())["connection.password"] == "s3cret"


def test_the_password_lies_nowhere_in_the_database_in_clear() -> None:
    services.create(ANN, C, "a", SOURCE)
    services.put_config(ANN, C, "a", SOURCE | {"file": "f"})

    with connections["connect"].cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - names of the tables
            assert "s3cret" not in str(cursor.fetchall())


def test_a_name_is_given_once() -> None:
    services.create(ANN, C, "a", SOURCE)

    with pytest.raises(Conflict, match="Connector a already exists"):
        services.create(ANN, C, "a", SOURCE)


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        ("a", {}, "Connector config {name=a} contains no connector type"),
        ("a", {"connector.class": "nope"}, "which name matches nope, available connectors are:"),
        ("a", SOURCE | {"name": "b"}, "Connector name configuration (b) doesn't match"),
        ("", SOURCE, "1 to 249 characters"),
        ("a" * 250, SOURCE, "1 to 249 characters"),
        ("a", SOURCE | {"file": "a\0b"}, "holds a NUL"),
        ("pay\u202ellor", SOURCE, r"the name pay\u202ellor has characters that readers do not see"),
        ("ad\u200bmin", SOURCE, r"the name ad\u200bmin has characters"),
        ("a\u2028b", SOURCE, r"the name a\u2028b has characters"),
        ("a", SOURCE | {str(n): "" for n in range(2001)}, "at most 2000 are allowed"),
        ("a", {**SOURCE, "topic": "t", "batch.size": "x"}, "contains the following 1 error(s):"),
    ],
)
def test_a_config_that_would_not_work_is_refused(
    name: str, config: dict[str, str], words: str
) -> None:
    with pytest.raises(Unfit) as refusal:
        services.create(ANN, C, name, config)

    assert words in str(refusal.value)
    assert not models.Connector.objects.exists()
    assert changes.waiting() == []


@pytest.mark.parametrize(
    ("config", "grants", "words"),
    [
        (SOURCE, [], "You may not create connectors"),
        (SOURCE, [may(Operation.CREATE_CONNECTORS)], "You may not produce on topic t,"),
        (
            SOURCE | {"transforms": "r", "transforms.r.type": "RegexRouter"},
            [may(Operation.CREATE_CONNECTORS), may(Operation.PRODUCE, Kind.TOPIC, "t")],
            "You may not produce on all topics",
        ),
        (SINK, [may(Operation.CREATE_CONNECTORS)], "You may not read payloads on topic a,"),
        (
            SINK | {"topics": "", "topics.regex": "a.*"},
            [may(Operation.CREATE_CONNECTORS), may(Operation.READ_PAYLOADS, Kind.TOPIC, "a*")],
            "You may not read payloads on all topics",
        ),
        (
            SINK | {"errors.deadletterqueue.topic.name": "dlq"},
            [may(Operation.CREATE_CONNECTORS), may(Operation.READ_PAYLOADS, Kind.TOPIC)],
            "You may not produce on topic dlq,",
        ),
        (
            SINK | {"errors.deadletterqueue.topic.name": "dlq"},
            [
                may(Operation.CREATE_CONNECTORS),
                may(Operation.READ_PAYLOADS, Kind.TOPIC),
                may(Operation.PRODUCE, Kind.TOPIC),
            ],
            "You may not create topics on topic dlq,",
        ),
        (
            {"connector.class": "samsa.spark.sql", "topics": "a", "output.topic": "out"},
            [may(Operation.CREATE_CONNECTORS), may(Operation.READ_PAYLOADS, Kind.TOPIC)],
            "You may not produce on topic out,",
        ),
        (
            {"connector.class": "Lines", "topic.prefix": "db", "topic": "db-x"},
            [may(Operation.CREATE_CONNECTORS), may(Operation.PRODUCE, Kind.TOPIC, "db-*")],
            "You may not produce on all topics that begin with db,",
        ),
        (
            SOURCE | {"transforms": "u", "transforms.u.route.by.field": "to"},
            [may(Operation.CREATE_CONNECTORS), may(Operation.PRODUCE, Kind.TOPIC, "t")],
            "You may not produce on all topics",
        ),
        (
            CAPTURE | {"heartbeat.interval.ms": "1000"},
            [may(Operation.CREATE_CONNECTORS), may(Operation.PRODUCE, Kind.TOPIC, "shop*")],
            "You may not produce on all topics that begin with __debezium-heartbeat,",
        ),
        (
            SOURCE | {"transforms": "${secret:route}", "transforms.r.type": "RegexRouter"},
            [may(Operation.CREATE_CONNECTORS), may(Operation.PRODUCE, Kind.TOPIC, "t")],
            "You may not produce on all topics,",
        ),
        (
            {"connector.class": "Lines", "kafka.topic": "t"},
            [may(Operation.CREATE_CONNECTORS), may(Operation.PRODUCE, Kind.TOPIC, "t")],
            "You may not produce on all topics,",
        ),
        (
            SOURCE | {"topic.creation.default.partitions": "3"},
            [may(Operation.CREATE_CONNECTORS), may(Operation.PRODUCE, Kind.TOPIC)],
            "You may not create topics on topic t,",
        ),
    ],
)
def test_nobody_reaches_topics_by_a_connector_that_they_may_not_reach(
    config: dict[str, str], grants: list[Grant], words: str
) -> None:
    nobody = Caller(kind=CallerKind.USER, name="bob", rights=Rights(grants))

    with pytest.raises(Refused) as refusal:
        services.create(By(caller=nobody), C, "a", config)

    assert words in str(refusal.value)


def test_the_topic_of_heartbeats_counts_where_there_are_some() -> None:
    limited = by(
        may(Operation.CREATE_CONNECTORS),
        may(Operation.PRODUCE, Kind.TOPIC, "shop*"),
    )

    named = {"heartbeat.interval.ms": "1000", "heartbeat.topics.prefix": "shop-beats"}
    for name, more in (("a", {}), ("b", {"heartbeat.interval.ms": "0"}), ("c", named)):
        assert services.create(limited, C, name, CAPTURE | more).kind == "source"


def test_rights_on_the_topics_of_a_config_are_enough() -> None:
    limited = by(
        may(Operation.CREATE_CONNECTORS, pattern="team-*"),
        may(Operation.PRODUCE, Kind.TOPIC, "t*"),
        may(Operation.READ_PAYLOADS, Kind.TOPIC, "a"),
    )

    assert services.create(limited, C, "team-x", SOURCE).name == "team-x"
    assert services.create(limited, C, "team-y", SINK | {"topics": "a"}).kind == "sink"
    with pytest.raises(Refused, match="You may not create connectors on connector x"):
        services.create(limited, C, "x", SOURCE)


def test_a_masked_password_stays_what_it_was() -> None:
    shown = services.create(ANN, C, "a", SOURCE).config

    info, is_new = services.put_config(ANN, C, "a", {**shown, "batch.size": "5"})

    assert not is_new
    assert info.config["batch.size"] == "5"
    assert info.generation == 2
    assert selectors.opened(row())["connection.password"] == "s3cret"


def test_a_stored_password_is_sent_to_no_other_host() -> None:
    shown = services.create(ANN, C, "a", SOURCE | {"connection.url": "db:5432"}).config

    with pytest.raises(Invalid, match=r"connection\.url changes, and the stored password goes"):
        services.put_config(ANN, C, "a", {**shown, "connection.url": "evil:5432"})

    services.put_config(
        ANN, C, "a", {**shown, "connection.url": "new:5432", "connection.password": "new"}
    )
    assert isinstance(selectors.opened(row())["connection.password"], Opened)


def test_a_mask_without_anything_behind_it_is_refused() -> None:
    with pytest.raises(Invalid, match="none is stored: give the value itself"):
        services.create(ANN, C, "a", SOURCE | {"connection.password": "[hidden]"})


def test_a_patch_changes_keys_and_takes_keys_away() -> None:
    services.create(ANN, C, "a", SOURCE | {"file": "f"})

    info = services.patch_config(ANN, C, "a", {"batch.size": "7", "file": None})

    assert info.config["batch.size"] == "7"
    assert "file" not in info.config
    assert selectors.opened(row())["connection.password"] == "s3cret"
    with pytest.raises(NotFound, match="Connector nope not found"):
        services.patch_config(ANN, C, "nope", {})


def test_two_changes_at_once_do_not_undo_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    services.create(ANN, C, "a", SOURCE)
    judge = selectors.judged

    def meanwhile(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(selectors, "judged", judge)
        services.put_config(ANN, C, "a", SOURCE | {"file": "first"})
        return judge(*args, **more)

    monkeypatch.setattr(selectors, "judged", meanwhile)

    with pytest.raises(Conflict, match="changed by another user"):
        services.put_config(ANN, C, "a", SOURCE | {"file": "second"})
    assert selectors.connector(C, "a").config["file"] == "first"


def test_pause_resume_and_stop_are_wishes_that_the_planner_grants() -> None:
    services.create(ANN, C, "a", SOURCE)

    for change, target in (
        (services.pause, Target.PAUSED),
        (services.resume, Target.STARTED),
        (services.stop, Target.STOPPED),
    ):
        change(ANN, C, "a")
        assert row().target == target
        assert row().generation == 1
        with pytest.raises(NotFound, match="Unknown connector nope"):
            change(ANN, C, "nope")
        with pytest.raises(Refused, match="You may not operate connectors"):
            change(by(may(Operation.VIEW)), C, "a")


@pytest.mark.parametrize(
    ("include", "only_failed", "generation", "states"),
    [
        (False, False, 1, ["RUNNING", "FAILED"]),
        (True, False, 2, ["RESTARTING", "RESTARTING"]),
        (True, True, 1, ["RUNNING", "RESTARTING"]),
        (False, True, 1, ["RUNNING", "FAILED"]),
    ],
)
def test_a_restart_reaches_the_tasks_it_is_told_to(
    include: bool, only_failed: bool, generation: int, states: list[str]
) -> None:
    services.create(ANN, C, "a", SOURCE)
    models.Connector.objects.update(state=State.RUNNING)
    add_task(0)
    add_task(1, state=State.FAILED, trace="boom")

    status = services.restart(ANN, C, "a", include_tasks=include, only_failed=only_failed)

    assert [task.state for task in status.tasks] == states
    assert row().generation == generation


def test_a_failed_connector_begins_anew_without_its_trace() -> None:
    services.create(ANN, C, "a", SOURCE)
    models.Connector.objects.update(state=State.FAILED, trace="boom")

    services.restart(ANN, C, "a")

    assert (row().generation, row().trace, row().state) == (2, "", State.UNASSIGNED)


def test_a_task_that_is_restarted_loses_its_lease_and_its_fence_rises() -> None:
    services.create(ANN, C, "a", SOURCE)
    add_task(0, worker="w", epoch=3, leased_until=timezone.now() + timedelta(seconds=15))

    services.restart_task(ANN, C, "a", 0)

    task = models.Task.objects.get()
    assert (task.state, task.epoch, task.worker, task.leased_until) == ("RESTARTING", 4, "", None)
    with pytest.raises(NotFound, match="Unknown task: a-9"):
        services.restart_task(ANN, C, "a", 9)
    with pytest.raises(NotFound, match="Unknown connector: nope"):
        services.restart_task(ANN, C, "nope", 0)


def test_offsets_change_only_while_nothing_runs() -> None:
    services.create(ANN, C, "a", SOURCE)
    offsets = [({"file": "x"}, {"position": 1})]

    with pytest.raises(Unfit, match="must be in the STOPPED state"):
        services.alter_offsets(ANN, C, "a", offsets, groups=Groups())
    services.stop(ANN, C, "a")
    add_task(0, leased_until=timezone.now() + timedelta(seconds=15))
    with pytest.raises(Conflict, match="are still ending"):
        services.reset_offsets(ANN, C, "a", groups=Groups())
    models.Task.objects.all().delete()
    services.alter_offsets(ANN, C, "a", offsets, groups=Groups())

    assert selectors.source_offsets(C, "a") == [({"file": "x"}, {"position": 1})]


@pytest.mark.parametrize(
    ("config", "place", "offset"),
    [
        (SOURCE, {"file": "x"}, {"position": 1}),
        (SINK, {"kafka_topic": "a", "kafka_partition": 0}, {"kafka_offset": 1}),
    ],
)
def test_tasks_are_made_anew_for_offsets_that_were_changed(
    config: dict[str, str], place: dict[str, Any], offset: dict[str, Any]
) -> None:
    services.create(ANN, C, "a", config, target=Target.STOPPED)
    groups = Groups()

    services.alter_offsets(ANN, C, "a", [(place, offset)], groups=groups)
    assert row().generation == 2
    services.reset_offsets(ANN, C, "a", groups=groups)

    assert row().generation == 3


def test_offsets_of_a_source_are_set_dropped_and_reset() -> None:
    services.create(ANN, C, "a", SOURCE, target=Target.STOPPED)
    both = [({"a": 1, "b": 2}, {"position": 1}), ({"c": 1}, {"position": 2})]

    services.alter_offsets(ANN, C, "a", both, groups=Groups())
    services.alter_offsets(ANN, C, "a", [({"b": 2, "a": 1}, None)], groups=Groups())
    assert selectors.source_offsets(C, "a") == [({"c": 1}, {"position": 2})]
    with pytest.raises(Unfit, match="needs a position"):
        services.alter_offsets(ANN, C, "a", [({"c": 1}, {"x": 2})], groups=Groups())
    with pytest.raises(Unfit, match="cannot be null or missing"):
        services.alter_offsets(ANN, C, "a", [(None, {"position": 2})], groups=Groups())
    with pytest.raises(Unfit, match="need to be provided"):
        services.alter_offsets(ANN, C, "a", [], groups=Groups())

    services.reset_offsets(ANN, C, "a", groups=Groups())

    assert selectors.source_offsets(C, "a") == []


def test_a_reset_leaves_the_offsets_of_the_retry_topic() -> None:
    services.create(ANN, C, "a", SINK, target=Target.STOPPED)
    groups = Groups()
    retries = TopicPartition(topic="connect-a.retry", partition=0)
    groups.commit("connect-a", {retries: 7, TopicPartition(topic="a", partition=0): 9})

    services.reset_offsets(ANN, C, "a", groups=groups)

    assert groups.offsets["connect-a"] == {retries: 7}


def test_a_job_is_reset_by_offsets_that_its_own_memory_yields_to() -> None:
    services.create(ANN, C, "a", SINK, target=Target.STOPPED)
    models.Connector.objects.update(pool="spark")
    groups, first = Groups(), TopicPartition(topic="a", partition=0)
    groups.commit("connect-a", {first: 9})

    services.reset_offsets(ANN, C, "a", groups=groups)

    assert groups.offsets["connect-a"] == {first: 0}


def test_offsets_of_a_sink_are_those_of_its_group() -> None:
    services.create(ANN, C, "a", SINK, target=Target.STOPPED)
    groups = Groups()
    place = {"kafka_topic": "a", "kafka_partition": "1"}

    services.alter_offsets(ANN, C, "a", [(place, {"kafka_offset": 5})], groups=groups)
    assert groups.offsets == {"connect-a": {TopicPartition(topic="a", partition=1): 5}}
    services.reset_offsets(ANN, C, "a", groups=groups)

    assert groups.offsets == {"connect-a": {}}


def test_a_sink_that_is_resumed_meanwhile_may_not_have_the_offsets() -> None:
    services.create(ANN, C, "a", SINK, target=Target.STOPPED)
    place = {"kafka_topic": "a", "kafka_partition": "1"}

    class Resumed(Groups):
        def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
            super().commit(group, offsets)
            services.resume(ANN, C, "a")

    before = row().generation
    with pytest.raises(Conflict, match="was resumed while its offsets were changed"):
        services.alter_offsets(ANN, C, "a", [(place, {"kafka_offset": 5})], groups=Resumed())

    # Its tasks begin anew all the same, since the group has other offsets.
    assert row().generation > before


def test_offsets_that_the_other_side_keeps_are_said_to_remain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services.create(ANN, C, "a", SINK, target=Target.STOPPED)
    place = {"kafka_topic": "a", "kafka_partition": "1"}
    monkeypatch.setattr(Blackhole, "keeps_offsets", True)

    altered = services.alter_offsets(ANN, C, "a", [(place, {"kafka_offset": 5})], groups=Groups())
    reset = services.reset_offsets(ANN, C, "a", groups=Groups())

    assert "manually altered in the system that the connector uses" in altered
    assert "manually reset in the system that the connector uses" in reset


@pytest.mark.parametrize(
    ("place", "offset", "words"),
    [
        (None, {}, "The partition for a sink connector offset cannot be null or missing"),
        ({"kafka_topic": "a"}, {}, "must contain the keys 'kafka_topic' and 'kafka_partition'"),
        ({"kafka_topic": "a", "kafka_partition": "x"}, {}, "Kafka partition value"),
        ({"kafka_topic": "a", "kafka_partition": -1}, {}, "Kafka partition value"),
        ({"kafka_topic": "a", "kafka_partition": 1}, {}, "contain the key 'kafka_offset'"),
        ({"kafka_topic": "a", "kafka_partition": 1}, {"kafka_offset": True}, "Kafka offset value"),
    ],
)
def test_an_offset_that_no_sink_could_have_is_refused(
    place: dict[str, Any] | None, offset: dict[str, Any], words: str
) -> None:
    services.create(ANN, C, "a", SINK, target=Target.STOPPED)

    with pytest.raises(Unfit) as refusal:
        services.alter_offsets(ANN, C, "a", [(place, offset)], groups=Groups())

    assert words in str(refusal.value)


def test_every_change_waits_to_be_told_with_its_author_and_without_passwords() -> None:
    services.create(ANN, C, "a", SOURCE)
    services.put_config(ANN, C, "a", SOURCE | {"file": "f", "connection.password": "oth3r"})
    services.stop(ANN, C, "a")
    services.delete(ANN, C, "a")

    told = changes.waiting()

    assert [(one.event, one.actor, one.address) for one in told] == [
        (event, "User:ann", "192.0.2.7")
        for event in (
            "connector.created",
            "connector.altered",
            "connector.stopped",
            "connector.deleted",
        )
    ]
    assert told[1].after == {"file": "f", "connection.password": "[hidden], another one"}
    assert "s3cret" not in json.dumps([dict(one.before) | dict(one.after) for one in told])
    changes.told([one.number for one in told])
    assert changes.waiting() == []


def test_all_passwords_are_sealed_anew_with_a_new_key() -> None:
    services.create(ANN, C, "a", SOURCE)
    services.create(ANN, C, "b", SINK)

    selectors.vault().rotate()
    selectors.vault.cache_clear()
    count = services.seal_anew()
    selectors.vault().forget_former()
    selectors.vault.cache_clear()

    assert count == 1
    assert selectors.opened(row())["connection.password"] == "s3cret"
