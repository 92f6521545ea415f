"""The newest dead letters of a connector, as pages and commands show them."""

import pytest

from connectors import dead_letters, services
from connectors.changes import By
from connectors.refusals import Refused
from connectors.runtime import letter_causes
from connectors.runtime.letters import Unsent
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import FULL_ADMIN, Grant, Rights
from gateway.access.operations import Kind, Operation
from tests.fakes.dead_letters import DEAD, bury
from tests.fakes.slice_ports import FakeClock, FakeWire

pytestmark = pytest.mark.usefixtures("database")
C = "cluster-of-the-tests-0"
SINK = {
    "connector.class": "samsa.test.blackhole",
    "topics": "in",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": DEAD,
}


def by(*grants: Grant) -> By:
    rights = Rights(grants or (FULL_ADMIN,))
    return By(caller=Caller(kind=CallerKind.USER, name="ann", rights=rights))


ANN = by()


@pytest.fixture
def wire() -> FakeWire:
    services.create(ANN, C, "c", SINK)
    return FakeWire(FakeClock(), **{DEAD: 2, "in": 1})


def look(wire: FakeWire, **more: object) -> dead_letters.Look:
    return dead_letters.look(ANN, C, "c", wire=wire, **more)  # type: ignore[arg-type]


def test_letters_come_newest_first_with_their_cause(wire: FakeWire) -> None:
    bury(wire, b"a", key=b"k")
    bury(wire, b"b", connector_name="d", partition=1)
    bury(wire, b"c")

    found = look(wire)

    assert [(one.id, one.value.text) for one in found.rows] == [
        ("0/1", "c"),
        ("0/0", "a"),
        ("1/0", "b"),
    ]
    first = found.rows[1]
    assert (first.topic, first.topic_partition, first.topic_offset) == ("in", 0, 0)
    assert (first.stage, first.short_exception) == ("VALUE_CONVERTER", "DataException")
    assert (first.key.text, first.key.size) == ("k", 1)
    assert [one.unsent for one in found.rows] == [None, None, Unsent.OTHER]
    assert (found.looked, found.total, found.older) == (3, 3, {})


def test_a_filter_leaves_letters_out(wire: FakeWire) -> None:
    bury(wire, b"a")
    bury(wire, b"b", stage="TASK_PUT")

    found = look(wire, stage="TASK_PUT")

    assert [one.value.text for one in found.rows] == ["b"]
    assert found.looked == 2


def test_older_letters_are_on_the_next_page_and_none_is_left_out(wire: FakeWire) -> None:
    for number in range(130):
        bury(wire, b"%d" % number, partition=number % 2)

    before, seen = None, []
    for _ in range(4):
        found = look(wire, before=before)
        seen += [one.id for one in found.rows]
        before = found.older
        if not before:
            break

    assert len(seen) == len(set(seen)) == 130


def test_passwords_of_the_connector_stand_in_no_letter(wire: FakeWire) -> None:
    config = SINK | {"connector.class": "samsa.http.sink", "http.url": "http://192.88.98.1/"}
    config |= {"http.authorization.type": "static", "http.headers.authorization": "hunter22"}
    services.put_config(ANN, C, "c", config)
    bury(wire, b"a", exception_message="no hunter22", exception_stacktrace="at hunter22")

    [one] = look(wire).rows

    assert "hunter22" not in f"{one.message} {one.stack}"
    assert one.message == "no [hidden]"
    [cause] = dead_letters.causes(ANN, C, "c", wire=wire).rows
    assert "hunter22" not in f"{cause.text} {cause.message} {one.cause.text}"


def test_whoever_may_not_read_records_sees_no_letter(wire: FakeWire) -> None:
    only = by(Grant(operation=Operation.VIEW, kind=Kind.CONNECTOR, pattern="*"))

    with pytest.raises(Refused, match="read payloads"):
        dead_letters.look(only, C, "c", wire=wire)


def test_letters_are_counted_by_cause_with_an_example(wire: FakeWire) -> None:
    for number in range(3):
        bury(
            wire, b"x", partition=number % 2, exception_message=f'"{number}" is not a number\nat 1'
        )
    said = "JsonConverter with schemas.enable requires schema and payload"
    bury(wire, b"y", exception_message=said)

    found = dead_letters.causes(ANN, C, "c", wire=wire)
    shown = look(wire, cause=found.rows[0].id)

    first, second = found.rows
    assert (first.letters, first.text, first.example) == (3, "… is not a number", "0/1")
    assert first.message.startswith('"2" is not a number')
    assert second.advice == "set value.converter.schemas.enable=false"
    assert (found.counted, found.total, found.is_whole) == (4, 4, True)
    assert len(shown.rows) == 3


def test_causes_beyond_the_limit_are_counted_together(
    wire: FakeWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_causes, "MAX_CAUSES", 2)
    for letter in ("a", "b", "c", "b"):
        bury(wire, b"x", exception_message=f"failed as {letter}")

    found = dead_letters.causes(ANN, C, "c", wire=wire)

    assert [(one.text, one.letters) for one in found.rows] == [
        ("failed as b", 2),
        ("failed as a", 1),
    ]
    assert (found.counted, found.others) == (4, 1)


def test_a_topic_that_nothing_has_failed_into_is_not_there(wire: FakeWire) -> None:
    del wire.logs[DEAD]

    assert not look(wire).is_there


def test_a_long_value_is_cut_and_a_null_is_none(wire: FakeWire) -> None:
    bury(wire, b"x" * (dead_letters.MAX_PREVIEW_BYTES + 1))

    [one] = look(wire).rows

    assert one.value.is_cut
    assert len(one.value.text) == dead_letters.MAX_PREVIEW_BYTES
    assert one.key.size is None
