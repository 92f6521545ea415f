"""How long changes wait for the database, across attempts."""

import pytest

from tests.database import project_home
from tests.fakes.clock import ManualClock

project_home()

from brokers.controlplane.lanes import Unanswered  # noqa: E402
from brokers.controlplane.writes import Writes  # noqa: E402

LOCKED = ConnectionError("database is locked\n")


def failed(
    writes: Writes, clock: ManualClock, *, after_ms: int, error: ConnectionError = LOCKED
) -> None:
    def refuse() -> None:
        with writes.attempt():
            clock.advance(after_ms)
            raise error

    with pytest.raises(ConnectionError):
        refuse()


def test_an_attempt_counts_while_it_runs() -> None:
    clock = ManualClock()
    writes = Writes(clock)

    with writes.attempt():
        clock.advance(700)
        assert writes.oldest_ms == 700

    assert (writes.oldest_ms, writes.is_failing) == (0, False)


def test_failed_attempts_add_up_until_one_succeeds() -> None:
    clock = ManualClock()
    writes = Writes(clock)
    failed(writes, clock, after_ms=3_000)
    clock.advance(200)
    failed(writes, clock, after_ms=3_000)

    assert (writes.oldest_ms, writes.is_failing) == (6_200, True)
    assert writes.last_refusal == "database is locked"
    assert writes.last_refusal_at_ms == clock.now_ms()

    with writes.attempt():
        clock.advance(10)
    clock.advance(500)

    assert (writes.oldest_ms, writes.is_failing) == (0, False)
    assert writes.proof_age_ms == 500


def test_other_errors_say_nothing_about_the_database() -> None:
    writes = Writes(ManualClock())

    with pytest.raises(KeyError), writes.attempt():
        raise KeyError

    assert not writes.is_failing


def test_a_write_behind_another_one_does_not_hide_the_reason() -> None:
    clock = ManualClock()
    writes = Writes(clock)
    failed(writes, clock, after_ms=100)
    failed(writes, clock, after_ms=100, error=Unanswered("no answer within 3 s"))

    assert writes.last_refusal == "database is locked"
    with writes.attempt():
        pass
    failed(writes, clock, after_ms=100, error=Unanswered("no answer within 3 s"))
    assert writes.last_refusal == "no answer within 3 s"
