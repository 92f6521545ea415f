"""The SQLite backend: what takes a turn before it writes, and what does not."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from django.db import OperationalError, connections, transaction

from brokers import disk_room
from brokers.disk_room import Room
from gateway.sqlite.base import WRITES
from gateway.sqlite.turns import Turn, TurnTimeout
from tests.database import pointed_at, sqlite_databases
from tests.gateway.sqlite.waiting import join_waiting_threads

from django.contrib.auth.models import Group  # isort: skip
from gateway.access.models import Session  # isort: skip

TIMEOUT_S = 0.02


@pytest.fixture
def turn(tmp_path: Path) -> Iterator[Turn]:
    """Return the turn of another writer of web.db, for which other writers wait only briefly."""
    with sqlite_databases(tmp_path):
        options = {**connections.settings["default"]["OPTIONS"], "timeout": TIMEOUT_S}
        with pointed_at({"default": {"NAME": tmp_path / "web.db", "OPTIONS": options}}):
            other = Turn(tmp_path / "web.db", is_urgent=False)
            yield other
            other.close()
    join_waiting_threads()


def test_both_files_of_a_home_have_the_queue(turn: Turn) -> None:
    assert {place["ENGINE"] for place in connections.settings.values()} == {"gateway.sqlite"}


def test_a_transaction_takes_its_turn_and_gives_it_back(turn: Turn) -> None:
    with transaction.atomic():
        Group.objects.create(name="one")
        with pytest.raises(TurnTimeout, match="database is locked"):
            turn.take(0)
    turn.take(TIMEOUT_S)


def test_a_transaction_that_fails_gives_its_turn_back(turn: Turn) -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        Group.objects.create(name="one")
        raise ZeroDivisionError
    turn.take(TIMEOUT_S)


def test_a_connection_that_is_closed_in_a_transaction_gives_its_turn_back(turn: Turn) -> None:
    with transaction.atomic():
        Group.objects.create(name="one")
        connections["default"].close()
    turn.take(TIMEOUT_S)
    assert not Group.objects.exists()


def test_a_savepoint_takes_no_second_turn(turn: Turn) -> None:
    with transaction.atomic():
        with transaction.atomic():
            Group.objects.create(name="one")
        Group.objects.create(name="two")
    assert Group.objects.count() == 2


def test_a_writer_that_does_not_get_its_turn_fails_in_words(turn: Turn) -> None:
    turn.take(TIMEOUT_S)
    with pytest.raises(OperationalError, match=r"web\.db-writer"), transaction.atomic():
        pass


def test_statement_outside_of_transactions_takes_a_turn_and_gives_it_back(turn: Turn) -> None:
    group = Group.objects.create(name="one")
    Group.objects.filter(pk=group.pk).update(name="two")

    turn.take(TIMEOUT_S)

    with pytest.raises(OperationalError, match="database is locked"):
        Group.objects.filter(pk=group.pk).update(name="three")


def test_reads_take_no_turn(turn: Turn) -> None:
    turn.take(TIMEOUT_S)
    assert not Group.objects.exists()
    assert Session.objects.count() == 0


@pytest.mark.parametrize(
    ("sql", "is_write"),
    [
        ("SELECT 1", False),
        ("  \n update x set y = 1", True),
        ("INSERT INTO x VALUES (1)", True),
        ("WITH v AS (VALUES (1)) SELECT * FROM v", False),
        ("WITH v AS (VALUES (1))\nUPDATE x SET y = 1", True),
        ("PRAGMA data_version", False),
        ("BEGIN DEFERRED", False),
        ("COMMIT", False),
        ("CREATE TABLE x (y)", True),
        ("UPDATED", False),
    ],
)
def test_statements_that_write_are_told_from_others(sql: str, is_write: bool) -> None:
    assert bool(WRITES.match(sql)) == is_write


def test_a_database_in_memory_has_no_files(tmp_path: Path) -> None:
    with sqlite_databases(tmp_path), pointed_at({"default": {"NAME": ":memory:"}}):
        with transaction.atomic(), connections["default"].cursor() as cursor:
            cursor.execute("CREATE TABLE x (y)")
            cursor.execute("INSERT INTO x VALUES (1)")
        # Django keeps a database in memory open; the test's is not needed any more.
        connections["default"].connection.close()
    assert not list(Path().glob("*-writer"))


@pytest.mark.parametrize("free_bytes", [0, 2**40])
def test_a_write_that_a_full_disk_refuses_gives_up_the_reserve_beside_the_file(
    turn: Turn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_bytes: int
) -> None:
    disk = Room(device=1, size_bytes=2**41, used_bytes=0, free_bytes=free_bytes)
    monkeypatch.setattr(disk_room, "room_at", lambda _folder: disk)
    reserve = tmp_path / disk_room.RESERVE_FILE
    reserve.touch()
    Group.objects.create(name="one")
    assert reserve.exists(), "nothing was refused"
    with connections["default"].cursor() as cursor:
        # SQLite's own error of a full disk, whatever the disk has.
        pages = cursor.execute("PRAGMA page_count").fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(OperationalError, match="database or disk is full"):
        Group.objects.bulk_create(Group(name=f"{n} {'x' * 140}") for n in range(200))

    assert reserve.exists() is (free_bytes > 0)
