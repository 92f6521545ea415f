"""Runs that send dead letters again: what is planned, who may, and how rows carry them on."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from connectors import changes, database_time, dead_letters, models, redrives, services
from connectors.changes import By
from connectors.models import RunState
from connectors.redrive_plans import RedrivePlan
from connectors.redrives import Asked
from connectors.refusals import Conflict, NotFound, Refused, Unfit
from connectors.runtime.letters import Destination, Unsent
from connectors.runtime.retry_topic import RUN
from connectors.sdk.records import TopicPartition
from connectors.tasks import redrives as tasks
from connectors.tasks import workers
from gateway.access import seals
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import FULL_ADMIN, Grant, Rights
from gateway.access.operations import Kind, Operation
from gateway.kafka.values import Span
from tests.fakes.dead_letters import DEAD, bury
from tests.fakes.slice_ports import FakeClock, FakeWire

pytestmark = pytest.mark.usefixtures("database")
C = "cluster-of-the-tests-0"
RETRIES = "connect-c.retry"
SINK = {
    "connector.class": "samsa.test.blackhole",
    "topics": "in",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": DEAD,
    "errors.deadletterqueue.context.headers.enable": "true",
}


def by(*grants: Grant) -> By:
    caller = Caller(kind=CallerKind.USER, name="ann", rights=Rights(grants or (FULL_ADMIN,)))
    return By(caller=caller, address="192.0.2.7")


def may(operation: Operation, kind: Kind, pattern: str = "*") -> Grant:
    return Grant(operation=operation, kind=kind, pattern=pattern)


ANN = by()
ALMOST = (
    may(Operation.ALTER_CONNECTORS, Kind.CONNECTOR),
    may(Operation.READ_PAYLOADS, Kind.TOPIC, DEAD),
)


@pytest.fixture
def wire() -> FakeWire:
    services.create(ANN, C, "c", SINK)
    changes.told([change.number for change in changes.waiting()])
    made = FakeWire(FakeClock(), **{DEAD: 1, "in": 1})
    for value in (b"a", b"b", b"c"):
        bury(made, value)
    return made


class Queue:
    """Messages to workers, and one that takes them."""

    def __init__(self, wire: FakeWire) -> None:
        self._wire = wire
        self.sent: list[tuple[str, int, datetime]] = []
        self.is_down = False

    def redrive(self, worker: str, run: int, ticket: datetime) -> None:
        if self.is_down:
            raise OSError("no server")
        self.sent.append((worker, run, ticket))

    def work(self) -> None:
        """Run slices until no run goes on."""
        while self.sent:
            worker, run, ticket = self.sent.pop(0)
            again = tasks.run_slice(worker, run, ticket, wire=self._wire, clock=self._wire.clock)
            if again is not None:
                self.sent.append((worker, run, again))


def add_worker(name: str = "w1") -> None:
    models.Worker.objects.create(cluster=C, name=name, host="h", process_id=1)


def planned(wire: FakeWire, who: By = ANN, **asked: Any) -> RedrivePlan:
    return redrives.plan(who, C, "c", Asked(**asked), wire=wire)


def row() -> models.Redrive:
    return models.Redrive.objects.get()


def test_letters_of_a_job_go_to_no_retry_topic_which_it_would_not_read(wire: FakeWire) -> None:
    models.Connector.objects.filter(name="c").update(plugin="samsa.spark.sink")

    with pytest.raises(Unfit, match="no retry topic"):
        planned(wire)
    assert planned(wire, destination=Destination.ORIGIN).chosen == 3


def test_a_plan_says_what_would_be_sent_and_changes_nothing(wire: FakeWire) -> None:
    bury(wire, b"theirs", connector_name="d")

    plan = planned(wire)

    assert (plan.chosen, plan.looked, plan.uncounted) == (3, 4, 0)
    assert plan.targets == {RETRIES: 3}
    assert plan.unsent == {Unsent.OTHER: 1}
    assert plan.makes_topic
    assert plan.choice.spans == (Span(partition=0, start=0, end=4),)
    assert not models.Redrive.objects.exists()
    assert not wire.created


def test_letters_are_planned_by_range_by_place_by_class_and_by_stage(wire: FakeWire) -> None:
    bury(wire, b"d", stage="TASK_PUT", exception_class_name="java.io.IOException")

    assert planned(wire, spans=(Span(partition=0, start=1, end=3),)).chosen == 2
    assert planned(wire, picked=frozenset({(0, 0), (0, 2)})).chosen == 2
    assert planned(wire, exception="IOException").chosen == 1
    assert planned(wire, stage="TASK_PUT").chosen == 1
    with pytest.raises(Unfit, match="has no partition 7"):
        planned(wire, spans=(Span(partition=7, start=0),))


def test_run_sends_letters_that_its_plan_had_no_time_to_count(
    wire: FakeWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_worker()
    queue = Queue(wire)
    monkeypatch.setattr(redrives, "MAX_LOOKED", 2)

    plan = planned(wire)
    bury(wire, b"later")
    started = redrives.start(ANN, plan, wire=wire)
    tasks.plan(C, queue)
    queue.work()

    assert (plan.chosen, plan.uncounted) == (2, 1)
    assert (started.is_counted, started.percent) == (False, 0)
    done = redrives.run(C, "c", started.id)
    assert (done.state, done.sent, done.percent) == ("DONE", 3, 100)
    assert wire.values(RETRIES) == [b"a", b"b", b"c"]


def test_run_sends_nothing_to_a_topic_that_its_plan_did_not_show(
    wire: FakeWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_worker()
    queue = Queue(wire)
    services.put_config(ANN, C, "c", SINK | {"topics": "in,private"})
    wire.logs["private"] = [[]]
    bury(wire, b"d", topic="private", offset="0")
    monkeypatch.setattr(redrives, "MAX_LOOKED", 3)

    redrives.start(ANN, planned(wire, destination=Destination.ORIGIN), wire=wire)
    tasks.plan(C, queue)
    queue.work()

    assert wire.values("in") == [b"a", b"b", b"c"]
    assert not wire.values("private")
    assert row().unsent == {Unsent.UNPLANNED.value: 1}


def test_letters_of_one_cause_are_sent_and_others_stay(wire: FakeWire) -> None:
    add_worker()
    queue = Queue(wire)
    bury(wire, b"d", stage="TASK_PUT", exception_message="column 4711 is too short")
    bury(wire, b"e", stage="TASK_PUT", exception_message="column 4712 is too short")
    found = dead_letters.causes(ANN, C, "c", wire=wire)
    [short] = [one for one in found.rows if one.stage == "TASK_PUT"]

    plan = planned(wire, cause=short.id)
    redrives.start(ANN, plan, wire=wire)
    tasks.plan(C, queue)
    queue.work()

    assert (plan.chosen, plan.cause_text) == (2, "column … is too short")
    assert wire.values(RETRIES) == [b"d", b"e"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: services.stop(ANN, C, "c"), "c is stopped, and reads nothing until it is resumed"),
        (
            lambda: models.Task.objects.update(state=models.State.FAILED),
            "1 of 1 tasks of c failed, and does nothing until a restart",
        ),
    ],
)
def test_plan_for_a_connector_that_does_not_run_says_what_follows(
    wire: FakeWire, change: Callable[[], object], said: str
) -> None:
    owner = models.Connector.objects.get(name="c")
    models.Task.objects.create(connector=owner, number=0, generation=1, state=models.State.RUNNING)
    assert not planned(wire).caution

    change()

    assert said in planned(wire).caution
    assert "wait in its retry topic" in planned(wire).caution
    assert "other readers" in planned(wire, destination=Destination.ORIGIN).caution


def test_a_run_sends_what_was_planned_and_is_told_of(wire: FakeWire) -> None:
    add_worker()
    queue = Queue(wire)
    run = redrives.start(ANN, planned(wire), wire=wire)

    tasks.plan(C, queue)
    queue.work()

    done = redrives.run(C, "c", run.id)
    assert (done.state, done.sent, done.percent) == ("DONE", 3, 100)
    assert wire.values(RETRIES) == [b"a", b"b", b"c"]
    assert [topic.configs for topic in wire.created] == [{"retention.ms": "-1"}]
    [change] = changes.waiting()
    assert change.event == "connector.redrive_started"
    assert change.after["letters"] == "3"
    assert change.after["to"] == RETRIES


def test_a_plan_that_is_applied_twice_is_done_once(wire: FakeWire) -> None:
    add_worker()
    plan, queue = planned(wire), Queue(wire)

    first = redrives.start(ANN, plan, wire=wire)
    tasks.plan(C, queue)
    queue.work()
    again = redrives.start(ANN, plan, wire=wire)

    assert again.id == first.id
    assert len(wire.values(RETRIES)) == 3


def test_one_run_of_a_connector_goes_on_at_a_time(wire: FakeWire) -> None:
    redrives.start(ANN, planned(wire), wire=wire)

    with pytest.raises(Conflict, match="sends dead letters of c already"):
        redrives.start(ANN, planned(wire), wire=wire)


@pytest.mark.parametrize(
    ("grants", "said"),
    [
        (ALMOST, "produce"),
        ((*ALMOST, may(Operation.PRODUCE, Kind.TOPIC, RETRIES)), "create topics"),
        (
            (
                may(Operation.READ_PAYLOADS, Kind.TOPIC, DEAD),
                may(Operation.PRODUCE, Kind.TOPIC),
                may(Operation.CREATE_TOPICS, Kind.TOPIC),
            ),
            "alter connectors",
        ),
    ],
)
def test_whoever_lacks_a_right_may_plan_and_not_start(
    wire: FakeWire, grants: tuple[Grant, ...], said: str
) -> None:
    plan = planned(wire, by(*grants))

    with pytest.raises(Refused, match=said):
        redrives.start(by(*grants), plan, wire=wire)


def test_whoever_may_not_read_the_letters_may_not_plan(wire: FakeWire) -> None:
    with pytest.raises(Refused, match="read payloads"):
        planned(wire, by(may(Operation.ALTER_CONNECTORS, Kind.CONNECTOR)))


def test_a_plan_is_refused_where_the_connector_or_a_topic_is_another_one(wire: FakeWire) -> None:
    plan = planned(wire)
    services.put_config(ANN, C, "c", SINK | {"tasks.max": "2"})
    with pytest.raises(Conflict, match="was changed"):
        redrives.start(ANN, plan, wire=wire)

    plan = planned(wire)
    wire.make_anew(DEAD)
    with pytest.raises(Conflict, match="topic dead was deleted"):
        redrives.start(ANN, plan, wire=wire)


def test_to_the_origin_other_groups_are_named_and_a_new_one_refuses_the_plan(
    wire: FakeWire,
) -> None:
    wire.add("in", b"x", b"y")
    at = TopicPartition(topic="in", partition=0)
    wire.groups = {"connect-c": {at: 2}, "billing": {at: 1}, "secret": {at: 0}}
    some = by(*ALMOST, may(Operation.VIEW, Kind.GROUP, "billing"))

    plan = planned(wire, destination=Destination.ORIGIN)
    narrow = planned(wire, some, destination=Destination.ORIGIN)
    wire.groups["new"] = {at: 0}

    assert [(group.name, group.lag) for group in plan.groups] == [("billing", 1), ("secret", 2)]
    assert ([group.name for group in narrow.groups], narrow.hidden_groups) == (["billing"], 1)
    with pytest.raises(Conflict, match="group new reads a destination topic"):
        redrives.start(ANN, plan, wire=wire)


def test_to_the_origin_letters_go_where_they_stood(wire: FakeWire) -> None:
    add_worker()
    queue = Queue(wire)

    redrives.start(ANN, planned(wire, destination=Destination.ORIGIN), wire=wire)
    tasks.plan(C, queue)
    queue.work()

    assert wire.values("in") == [b"a", b"b", b"c"]
    assert not wire.created
    assert not [name for name, _ in wire.logs["in"][0][0].headers if name == RUN]


def test_a_run_whose_worker_is_gone_goes_on_at_another_and_sends_none_twice(
    wire: FakeWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_worker("w1")
    queue = Queue(wire)
    redrives.start(ANN, planned(wire), wire=wire)
    tasks.plan(C, queue)
    # It dies when all is sent, and nothing noted.
    monkeypatch.setattr(tasks.RowLedger, "store", lambda *_: (_ for _ in ()).throw(SystemExit))
    with pytest.raises(SystemExit):
        queue.work()
    monkeypatch.undo()
    assert tasks.plan(C, queue) == 0

    models.Worker.objects.all().delete()
    add_worker("w2")
    models.Redrive.objects.update(leased_until=database_time.now() - timedelta(seconds=1))
    tasks.plan(C, queue)
    queue.work()

    assert (row().state, row().worker, row().sent) == ("DONE", "w2", 3)
    assert wire.values(RETRIES) == [b"a", b"b", b"c"]


def test_a_message_that_is_lost_is_sent_again_and_taken_once(wire: FakeWire) -> None:
    add_worker()
    queue = Queue(wire)
    redrives.start(ANN, planned(wire), wire=wire)
    queue.is_down = True
    tasks.plan(C, queue)
    queue.is_down = False

    assert tasks.plan(C, queue) == 0
    models.Redrive.objects.update(told_at=database_time.now() - tasks.TOLD_AGAIN)
    assert tasks.plan(C, queue) == 1
    queue.sent *= 2
    queue.work()

    assert (workers.by_pool(C), row().sent) == ({"": ["w1"]}, 3)


def test_a_run_is_stopped_and_resumed(wire: FakeWire) -> None:
    add_worker()
    queue = Queue(wire)
    run = redrives.start(ANN, planned(wire), wire=wire)

    stopped = redrives.stop(ANN, C, "c", run.id)
    assert tasks.plan(C, queue) == 0
    resumed = redrives.resume(ANN, C, "c", run.id)
    tasks.plan(C, queue)
    queue.work()

    assert (stopped.state, resumed.state, row().state) == ("STOPPED", "RUNNING", "DONE")
    assert wire.values(RETRIES) == [b"a", b"b", b"c"]
    with pytest.raises(Unfit, match="is done"):
        redrives.resume(ANN, C, "c", run.id)
    with pytest.raises(NotFound):
        redrives.stop(ANN, C, "c", run.id + 1)
    events = [change.event.rpartition("_")[2] for change in changes.waiting()]
    assert events == ["started", "stopped", "resumed"]


def test_a_run_whose_worker_is_still_at_it_is_not_resumed_beside_it(wire: FakeWire) -> None:
    run = redrives.start(ANN, planned(wire), wire=wire)
    redrives.stop(ANN, C, "c", run.id)
    models.Redrive.objects.update(leased_until=database_time.now() + tasks.LEASE)

    with pytest.raises(Conflict, match="still ending"):
        redrives.resume(ANN, C, "c", run.id)


def test_a_run_in_doubt_fails_and_goes_on_when_somebody_resumes_it(wire: FakeWire) -> None:
    add_worker()
    queue = Queue(wire)
    run = redrives.start(ANN, planned(wire, destination=Destination.ORIGIN), wire=wire)
    models.Redrive.objects.update(is_in_doubt=True)
    tasks.plan(C, queue)
    queue.work()
    failed = redrives.run(C, "c", run.id)

    redrives.resume(ANN, C, "c", run.id)
    tasks.plan(C, queue)
    queue.work()

    assert failed.state == RunState.FAILED
    assert "which have arrived" in failed.reason
    assert row().state == RunState.DONE


def test_sealed_plan_is_opened_as_it_was(wire: FakeWire) -> None:
    plan = planned(wire, picked=frozenset({(0, 1)}))
    sealed = seals.seal("redrive", plan, holder="ann")

    opened = seals.open_seal(sealed, holder="ann", types={"redrive": RedrivePlan})

    assert opened == ("redrive", plan)


def test_old_runs_are_forgotten(wire: FakeWire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redrives, "MAX_KEPT", 2)
    for _ in range(3):
        redrives.start(ANN, planned(wire), wire=wire)
        models.Redrive.objects.update(state=RunState.DONE)

    assert models.Redrive.objects.count() == 2
    assert [run.state for run in redrives.runs(C, "c")] == ["DONE", "DONE"]


def test_a_connector_without_dead_letters_says_which_key_is_missing(wire: FakeWire) -> None:
    services.create(ANN, C, "plain", {"connector.class": "samsa.test.blackhole", "topics": "in"})

    with pytest.raises(Unfit, match=r"errors\.deadletterqueue\.topic\.name"):
        redrives.plan(ANN, C, "plain", Asked(), wire=wire)
