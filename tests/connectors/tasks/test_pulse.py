"""The lease of a slice while it runs: renewed beside it, and lost in silence."""

import time
from collections.abc import Callable

import pytest

from connectors.models import Connector, Task
from connectors.runtime import figures
from connectors.runtime.figures import Figures
from connectors.runtime.ports import Verdict
from connectors.tasks import pulse
from connectors.tasks.pulse import Pulse
from tests.connectors.tasks.rows import add_connector, add_task, again, queued, taken

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.slow]
LIMIT_S = 20.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "LOOK_S", 0.01)
    monkeypatch.setattr(pulse, "RENEW_S", 0.02)


def becomes(lease: Pulse, wanted: Verdict) -> bool:
    return comes_true(lambda: lease.renew() is wanted)


def comes_true(fact: Callable[[], bool]) -> bool:
    end = time.monotonic() + LIMIT_S
    while not fact():
        if time.monotonic() > end:
            return False
    return True


def test_a_lease_is_renewed_and_tells_what_the_slice_has_done() -> None:
    task = add_task(add_connector(), figures={figures.READ: 7})
    held, counted = taken(task), Figures()
    first = again(task).leased_until
    assert first is not None

    with Pulse(held, counted, is_draining=lambda: False):
        counted.add(figures.READ, 10)
        counted.use("orders")
        is_renewed = comes_true(lambda: (again(task).leased_until or first) > first)
        is_told = comes_true(lambda: again(task).figures.get(figures.READ) == 17)
        has_topic = comes_true(lambda: Connector.objects.get().topics == ["orders"])

    assert (is_renewed, is_told, has_topic) == (True, True, True)


def test_the_first_commit_forgives_crashes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "RENEW_S", 1000.0)
    task = add_task(add_connector(), crashes=3)
    lease = Pulse(taken(task), Figures(), is_draining=lambda: False)

    lease.progress()

    assert again(task).crashes == 0


def test_a_slice_hears_in_its_turn_that_others_wait_and_that_it_is_to_stop() -> None:
    connector = add_connector()
    held = taken(add_task(connector))

    with Pulse(held, Figures(), is_draining=lambda: False) as lease:
        before = lease.renew()
        queued(add_task(connector, 1))
        yields = becomes(lease, Verdict.YIELD)
        Connector.objects.update(target="PAUSED")
        stops = becomes(lease, Verdict.STOP)
        Task.objects.all().delete()
        is_lost = becomes(lease, Verdict.LOST)

    assert (before, yields, stops, is_lost) == (Verdict.KEEP, True, True, True)


def test_a_lease_that_cannot_be_renewed_for_long_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    held = taken(add_task(add_connector()))
    monkeypatch.setattr(pulse, "MAX_SILENCE_S", -1.0)

    assert Pulse(held, Figures(), is_draining=lambda: False).renew() is Verdict.LOST


def test_a_worker_that_drains_stops_its_slice() -> None:
    held = taken(add_task(add_connector()))

    assert Pulse(held, Figures(), is_draining=lambda: True).renew() is Verdict.STOP
