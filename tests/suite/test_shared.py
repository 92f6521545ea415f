"""One start for all askers of a run, one stop at its end, and failures where they belong."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.suite.services import shared_home
from tests.suite.shared import (
    ADDRESS_VARIABLE,
    MAX_SERVICES,
    SharedFailure,
    ask,
    connected,
    keeping,
    made_once,
    unique_name,
)


class Started:
    """A service that notes what becomes of it."""

    def __init__(self) -> None:
        self.events: list[str] = []

    @contextmanager
    def serve(self, folder: Path, *, name: str = "one") -> Iterator[Any]:
        assert list(folder.iterdir()) == []
        self.events.append(f"start {name}")
        yield {"name": name, "thread": threading.current_thread().name}
        self.events.append(f"stop {name}")


@contextmanager
def refusing(_folder: Path) -> Iterator[Any]:
    raise OSError("no room")
    yield


@contextmanager
def stubborn(_folder: Path) -> Iterator[Any]:
    yield {}
    raise RuntimeError("processes left: [7]")


def test_a_service_is_started_once_and_stopped_when_the_run_ends() -> None:
    service = Started()

    with keeping({"thing": service.serve}):
        told = [ask("thing") for _ in range(3)]
        assert service.events == ["start one"]

    assert told == [{"name": "one", "thread": "shared"}] * 3
    assert service.events == ["start one", "stop one"]


def test_other_options_are_another_service_and_the_last_started_stops_first() -> None:
    service = Started()

    with keeping({"thing": service.serve}):
        for name in ("one", "two", "one"):
            assert ask("thing", name=name)["name"] == name

    assert service.events == ["start one", "start two", "stop two", "stop one"]


def test_every_asker_hears_why_a_start_failed_and_others_are_served() -> None:
    with keeping({"thing": Started().serve, "never": refusing}):
        for _ in range(2):
            with pytest.raises(SharedFailure, match="never: OSError: no room"):
                ask("never")
        assert ask("thing")["name"] == "one"


def test_a_service_that_does_not_stop_in_order_is_told_at_the_end() -> None:
    with (
        pytest.raises(SharedFailure, match=r"processes left: \[7\]"),
        keeping({"thing": stubborn}),
    ):
        ask("thing")


def test_the_number_of_services_is_limited() -> None:
    with keeping({"thing": Started().serve}):
        for number in range(MAX_SERVICES):
            ask("thing", name=str(number))

        with pytest.raises(SharedFailure, match=f"{MAX_SERVICES} shared services run"):
            ask("thing", name="more")


def test_an_asker_that_was_killed_leaves_the_keeper_working() -> None:
    with keeping({"thing": Started().serve}) as keeper:
        connected(keeper.address).close()
        with connected(keeper.address) as half:
            half.sendall(b'["thi')
        assert ask("thing")["name"] == "one"


def test_a_run_within_a_run_has_services_of_its_own() -> None:
    outer = os.environ.get(ADDRESS_VARIABLE)

    with keeping({}) as keeper:
        assert os.environ[ADDRESS_VARIABLE] == keeper.address
        assert keeper.address != outer

    assert os.environ.get(ADDRESS_VARIABLE) == outer


def test_names_differ_by_their_owner_and_stay_the_same_for_it() -> None:
    names = {unique_name("orders", owner) for owner in ("a.py::one", "a.py::two", "a.py::one")}

    assert len(names) == 2
    assert all(name.startswith("orders-") for name in names)


@pytest.mark.slow
def test_the_home_of_the_run_is_the_same_for_all_who_ask() -> None:
    first, second = shared_home(), shared_home()

    assert first.bootstrap == second.bootstrap
    assert first.pid("broker-1") == second.pid("broker-1")
    assert {entry["state"] for entry in first.status()["components"]} == {"healthy"}


def test_a_folder_of_a_run_is_filled_once_and_ends_with_the_run() -> None:
    filled: list[Path] = []

    def fill(folder: Path) -> None:
        filled.append(folder)
        if len(filled) == 1:
            raise OSError("the first one is killed")
        (folder / "web.db").touch()

    with keeping({}):
        with pytest.raises(OSError, match="killed"):
            made_once("tables", fill)
        found = [made_once("tables", fill) for _ in range(2)]

        assert found[0] == found[1]
        assert (found[0] / "web.db").exists()
    assert len(filled) == 2
    assert not found[0].exists()
