"""How a capture begins: by what is stored, and by what the server has."""

import pytest

from connectors.plugins.postgres.capture.positions import Position
from connectors.plugins.postgres.capture.settings import SnapshotMode
from connectors.plugins.postgres.capture.slots import Slot
from connectors.plugins.postgres.capture.starts import Start, start_of
from connectors.sdk.errors import ConnectorError

AT_40 = Slot(is_active=False, confirmed=40, written=90, is_lost=False)
LOST = Slot(is_active=False, confirmed=40, written=90, is_lost=True)
YOUNG = Slot(is_active=False, confirmed=40, written=45, is_lost=False)
STREAMING = Position(committed=50, epoch=1)
HALF = Position(committed=40, is_snapshot=True, table="public.a", epoch=1)


def start(
    mode: str, stored: Position | None = None, slot: Slot | None = None, *, epoch: int = 1
) -> Start:
    return start_of(SnapshotMode(mode), stored, slot, name="s", epoch=epoch)


@pytest.mark.parametrize("mode", ["initial", "when_needed", "always"])
def test_the_first_start_makes_a_slot_and_reads_all_rows(mode: str) -> None:
    assert start(mode) == Start(position=None, has_rows=True, makes_slot=True)


@pytest.mark.parametrize("mode", ["no_data", "never"])
def test_without_rows_a_slot_is_made_all_the_same(mode: str) -> None:
    assert start(mode) == Start(position=None, makes_slot=True)


def test_rows_are_read_beside_a_slot_that_is_there() -> None:
    position = Position(committed=40, is_snapshot=True)
    assert start("initial", None, AT_40) == Start(position=position, has_rows=True)


def test_a_slot_that_is_there_says_where_changes_begin() -> None:
    assert start("no_data", None, AT_40) == Start(position=Position(committed=40))


def test_changes_go_on_where_they_were_stored() -> None:
    within = Position(committed=50, transaction=70, change=60, epoch=1)
    assert start("initial", within, AT_40) == Start(position=within)


def test_a_snapshot_goes_on_behind_the_tables_that_are_done() -> None:
    assert start("initial", HALF, AT_40) == Start(position=HALF, has_rows=True)


def test_a_snapshot_whose_slot_is_gone_begins_anew_and_says_so() -> None:
    begun = start("initial", HALF)

    assert (begun.position, begun.has_rows, begun.makes_slot) == (None, True, True)
    assert "not reported" in begun.words


def test_a_snapshot_whose_slot_is_another_one_begins_anew_too() -> None:
    begun = start("initial", Position(committed=30, is_snapshot=True, table="public.a"), AT_40)

    assert begun.position == Position(committed=40, is_snapshot=True)
    assert "not reported" in begun.words


def test_an_unfinished_snapshot_that_is_not_wanted_any_more_is_left() -> None:
    assert start("no_data", HALF, AT_40).position == Position(committed=40, epoch=1)


@pytest.mark.parametrize(
    ("stored", "slot", "words"),
    [
        (STREAMING, None, "the slot s does not exist"),
        (STREAMING, LOST, "removed WAL"),
        (STREAMING, YOUNG, "up to 0/32, and ends at 0/2D, so it is another server's"),
        (Position(committed=30), AT_40, "from 0/28, and this connector has read up to 0/1E"),
    ],
)
def test_lost_changes_fail_unless_rows_may_be_read_again(
    stored: Position, slot: Slot | None, words: str
) -> None:
    with pytest.raises(ConnectorError, match=f"{words}.*when_needed"):
        start("initial", stored, slot)

    again = start("when_needed", stored, slot)
    assert again.has_rows
    assert again.makes_slot or again.position == Position(committed=40, is_snapshot=True)


def test_a_slot_that_lost_its_log_is_made_anew() -> None:
    assert start("when_needed", STREAMING, LOST).drops_slot


def test_rows_are_read_whenever_the_task_has_moved_where_always_is_asked_for() -> None:
    again = Position(committed=50, is_snapshot=True)
    assert start("always", STREAMING, AT_40, epoch=2) == Start(position=again, has_rows=True)
    assert start("always", STREAMING, AT_40, epoch=1) == Start(position=STREAMING)


def test_rows_alone_need_no_slot_and_are_read_once() -> None:
    first = start("initial_only")
    assert (first.has_rows, first.has_stream, first.makes_slot) == (True, False, False)
    assert start("initial_only", STREAMING) == Start(position=STREAMING, has_stream=False)
