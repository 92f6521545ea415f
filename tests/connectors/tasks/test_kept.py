"""What is kept between slices is closed when its task moves, changes, or gives way."""

from dataclasses import replace

import pytest

from connectors.models import Task
from connectors.runtime.held_bytes import ENOUGH_BYTES
from connectors.tasks import kept
from connectors.tasks.kept import Shelf
from tests.connectors.tasks.rows import add_connector, add_task, taken

pytestmark = pytest.mark.usefixtures("database")


class Connection:
    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Broken:
    def close(self) -> None:
        raise OSError("gone already")


def test_a_task_finds_what_it_kept_as_long_as_it_is_the_same_one() -> None:
    shelf, held, connection = Shelf(), taken(add_task(add_connector())), Connection()
    shelf.of(held).by_plugin["db"] = connection

    same = shelf.of(held).by_plugin.get("db")
    other_owner = shelf.of(replace(held, epoch=held.epoch + 1)).by_plugin.get("db")

    assert same is connection
    assert other_owner is None
    assert connection.is_closed


def test_what_a_task_left_here_is_closed_once_it_has_moved() -> None:
    shelf, held, connection = Shelf(), taken(add_task(add_connector())), Connection()
    shelf.of(held).by_plugin |= {"broken": Broken(), "db": connection}

    shelf.sweep("w1")
    is_closed_here = connection.is_closed
    Task.objects.update(assigned="w2")
    shelf.sweep("w1")

    assert (is_closed_here, connection.is_closed) == (False, True)


def test_tasks_of_a_process_share_what_they_may_hold() -> None:
    shelf, connector = Shelf(), add_connector()
    first, second = (taken(add_task(connector, number)) for number in range(2))
    shelf.of(first).held.hold(ENOUGH_BYTES)

    assert shelf.of(second).held.hold(1000) == 0
    assert shelf.of(first).held.is_asked
    shelf.close_of(first.task)
    assert shelf.of(second).held.hold(ENOUGH_BYTES) == 0


def test_after_a_failure_only_what_the_plugin_kept_is_closed() -> None:
    shelf, held, connection = Shelf(), taken(add_task(add_connector())), Connection()
    kept = shelf.of(held)
    kept.by_plugin["db"], kept.by_runtime["flushed"] = connection, {"a": 1}

    shelf.close_of(held.task)
    shelf.close_of(4711)

    assert connection.is_closed
    assert shelf.of(held).by_plugin == {}
    assert shelf.of(held).by_runtime == {"flushed": {"a": 1}}


def test_the_task_that_has_not_run_for_longest_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_TASKS", 2)
    shelf, connector = Shelf(), add_connector()
    connections = [Connection() for _ in range(3)]

    for number, connection in enumerate(connections):
        shelf.of(taken(add_task(connector, number))).by_plugin["db"] = connection

    assert [connection.is_closed for connection in connections] == [True, False, False]
