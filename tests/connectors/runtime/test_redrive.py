"""Slices of a run that sends dead letters again: bounded, fenced, and none sent twice."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connectors.runtime import redrive
from connectors.runtime.letters import Addressee, Choice, Destination, Unsent
from connectors.runtime.ports import LeaseLost, Verdict
from connectors.runtime.redrive import Ending, Redrive, Run, RunEnd, Step
from connectors.runtime.task_settings import Reading
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.values import NewRecord, Span
from tests.fakes.slice_ports import FakeClock, FakeWire

RETRIES = "connect-c.retry"


class FakeLedger:
    def __init__(self, *verdicts: Verdict) -> None:
        self.verdicts = list(verdicts) or [Verdict.KEEP]
        self.steps: list[Step] = []
        self.is_lost = False
        self.begun = 0

    def renew(self) -> Verdict:
        return self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]

    def begin(self) -> None:
        self.begun += 1

    def store(self, step: Step) -> None:
        if self.is_lost:
            raise LeaseLost
        self.steps.append(step)

    @property
    def sent(self) -> int:
        return sum(step.sent for step in self.steps)


def cluster(*values: bytes) -> FakeWire:
    wire = FakeWire(FakeClock(), dead=1, **{"in": 2, RETRIES: 1})
    for number, value in enumerate(values):
        bury(wire, value, offset=number)
    return wire


def bury(wire: FakeWire, value: bytes, *, offset: int, **told: str) -> None:
    context: Mapping[str, str] = {
        "topic": "in",
        "partition": "1",
        "offset": str(offset),
        "connector.name": "c",
        **{name.replace("_", "."): text for name, text in told.items()},
    }
    headers = tuple((f"__connect.errors.{name}", text.encode()) for name, text in context.items())
    wire.put("dead", NewRecord(value=value, headers=headers))


def planned(wire: FakeWire, **fields: Any) -> Run:
    end = len(wire.logs["dead"][0])
    known = {
        "id": "7",
        "dead_topic": "dead",
        "topic_ids": wire.topic_ids(["dead", RETRIES]),
        "destination": Destination.RETRY,
        "choice": Choice(spans=(Span(partition=0, start=0, end=end),)),
        "to": Addressee(connector="c", reading=Reading(topics=("in",))),
        "targets": (RETRIES, "in"),
        "positions": {0: 0},
        "mark": {0: 0},
    }
    return Run(**{**known, **fields})


def run(wire: FakeWire, ledger: FakeLedger, **fields: Any) -> RunEnd:
    told = planned(wire, **fields)
    return Redrive(told, wire=wire, ledger=ledger, clock=wire.clock).slice()


def test_all_letters_of_a_choice_are_sent_in_their_order() -> None:
    wire, ledger = cluster(b"a", b"b", b"c"), FakeLedger()

    end = run(wire, ledger)

    assert end.ending is Ending.DONE
    assert wire.values(RETRIES) == [b"a", b"b", b"c"]
    assert (ledger.sent, sum(step.looked for step in ledger.steps)) == (3, 3)
    assert ledger.steps[-1].positions == {0: 3}
    assert ledger.steps[-1].mark == {0: 3}


def test_a_letter_that_came_after_the_plan_is_left_for_the_next_run() -> None:
    wire, ledger = cluster(b"a"), FakeLedger()
    told = planned(wire)
    bury(wire, b"new", offset=9)

    end = Redrive(told, wire=wire, ledger=ledger, clock=wire.clock).slice()

    assert end.ending is Ending.DONE
    assert wire.values(RETRIES) == [b"a"]


def test_letters_that_are_not_sent_are_counted_by_their_reason() -> None:
    wire, ledger = cluster(b"a"), FakeLedger()
    bury(wire, b"theirs", offset=1, connector_name="d")

    run(wire, ledger)

    assert wire.values(RETRIES) == [b"a"]
    unsent = [step.unsent for step in ledger.steps if step.unsent]
    assert unsent == [{Unsent.OTHER: 1}]


def test_a_run_whose_worker_died_before_it_noted_a_batch_sends_none_twice() -> None:
    wire, ledger = cluster(b"a", b"b"), FakeLedger()
    ledger.is_lost = True
    first = run(wire, ledger)
    ledger.is_lost = False

    again = run(wire, ledger)

    assert (first.ending, again.ending) == (Ending.LOST, Ending.DONE)
    # The first one was sent before the ledger was asked, and is found again.
    assert wire.values(RETRIES) == [b"a", b"b"]
    assert ledger.sent == 2


def test_to_their_origin_a_run_that_may_have_sent_some_stops_and_says_so() -> None:
    wire, ledger = cluster(b"a"), FakeLedger()
    more = {"destination": Destination.ORIGIN, "topic_ids": wire.topic_ids(["dead"]), "mark": {}}

    doubt = run(wire, ledger, is_in_doubt=True, **more)
    sure = run(wire, ledger, **more)

    assert doubt.ending is Ending.FAILED
    assert "Samsa cannot find out which have arrived" in doubt.reason
    assert sure.ending is Ending.DONE
    assert ledger.begun == 1
    assert [len(log) for log in wire.logs["in"]] == [0, 1]


def test_a_slice_ends_where_others_wait_and_the_next_one_goes_on() -> None:
    wire, ledger = cluster(b"a", b"b", b"c"), FakeLedger(Verdict.YIELD)

    end = run(wire, ledger)
    positions, mark = ledger.steps[-1].positions, ledger.steps[-1].mark
    rest = run(wire, FakeLedger(), positions=positions, mark=mark)

    assert (end.ending, positions) == (Ending.MORE, {0: 1})
    assert rest.ending is Ending.DONE
    assert wire.values(RETRIES) == [b"a", b"b", b"c"]


def test_a_batch_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(redrive, "BATCH_BYTES", 1)
    wire, ledger = cluster(b"aa", b"bb"), FakeLedger()

    run(wire, ledger)

    assert [step.sent for step in ledger.steps] == [1, 1, 0]


def test_a_topic_that_was_made_again_ends_the_run() -> None:
    for topic in ("dead", RETRIES):
        wire, ledger = cluster(b"a"), FakeLedger()
        told = planned(wire)
        wire.make_anew(topic)

        end = Redrive(told, wire=wire, ledger=ledger, clock=wire.clock).slice()

        assert end.ending is Ending.FAILED
        assert f"topic {topic} was deleted" in end.reason


def test_what_a_broker_refuses_for_good_ends_the_run_and_what_passes_is_tried_later() -> None:
    for name, ending in (
        ("MESSAGE_TOO_LARGE", Ending.FAILED),
        ("NOT_ENOUGH_REPLICAS", Ending.LATER),
    ):
        wire, ledger = cluster(b"a"), FakeLedger()

        def refuse(topic: str, _record: NewRecord, name: str = name) -> KafkaFailure | None:
            return failure(name, f"topic {topic}")

        wire.refuse = refuse

        end = run(wire, ledger)

        assert end.ending is ending
        assert not ledger.sent


def test_letters_that_are_deleted_by_age_meanwhile_are_passed_over() -> None:
    wire, ledger = cluster(b"a", b"b"), FakeLedger()
    told = planned(wire)
    far = replace(told, choice=Choice(spans=(Span(partition=0, start=0, end=9),)))

    end = Redrive(far, wire=wire, ledger=ledger, clock=wire.clock).slice()

    assert end.ending is Ending.DONE
    assert ledger.steps[-1].positions == {0: 9}
