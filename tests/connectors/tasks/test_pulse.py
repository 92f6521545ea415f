"""The lease of a slice while it runs: renewed beside it, and lost in silence."""

import time
from collections.abc import Callable

import pytest

from connectors.models import Connector, Task
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


def test_a_lease_is_renewed_and_progress_forgives_crashes() -> None:
    task = add_task(add_connector(), crashes=3)
    held = taken(task)
    first = again(task).leased_until
    assert first is not None

    with Pulse(held, is_draining=lambda: False) as lease:
        lease.progress()
        is_renewed = comes_true(lambda: (again(task).leased_until or first) > first)
        is_forgiven = comes_true(lambda: again(task).crashes == 0)

    assert (is_renewed, is_forgiven) == (True, True)


def test_a_slice_hears_in_its_turn_that_others_wait_and_that_it_is_to_stop() -> None:
    connector = add_connector()
    held = taken(add_task(connector))

    with Pulse(held, is_draining=lambda: False) as lease:
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

    assert Pulse(held, is_draining=lambda: False).renew() is Verdict.LOST


def test_a_worker_that_drains_stops_its_slice() -> None:
    held = taken(add_task(add_connector()))

    assert Pulse(held, is_draining=lambda: True).renew() is Verdict.STOP
