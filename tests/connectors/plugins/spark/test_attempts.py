"""An end of a worker counts against its batch only where the home went on."""

import os
import threading
from dataclasses import replace

import pytest

from connectors.plugins.spark import attempts
from connectors.plugins.spark.attempts import MAX_SPARED, home_run, is_spared, noting_stop
from connectors.plugins.spark.batches import Batch, Span
from connectors.sdk.records import TopicPartition

A = TopicPartition(topic="orders", partition=0)
TWO = Batch(spans=(Span(place=A, start=0, end=2),), is_begun=True, begun_by="boot/1/10")
PATIENCE = 20


def test_a_run_of_a_home_is_named_by_the_process_above_the_worker() -> None:
    boot, supervisor, began = home_run().split("/")

    assert boot
    assert supervisor == attempts._field(str(os.getppid()), attempts.PARENT_FIELD)  # noqa: SLF001
    assert began == attempts._field(supervisor, attempts.BEGAN_FIELD)  # noqa: SLF001
    assert home_run() == home_run()


@pytest.mark.parametrize("run", ["boot/1/11", "boot/2/10", "reboot/1/10"])
def test_a_batch_of_another_run_keeps_its_size_some_times(run: str) -> None:
    assert is_spared(TWO, run)
    assert not is_spared(replace(TWO, spared=MAX_SPARED), run)


def test_one_record_of_another_run_is_spared_every_time() -> None:
    one = replace(TWO, spans=(Span(place=A, start=0, end=1),), spared=100)

    assert is_spared(one, "boot/1/11")
    assert not is_spared(one, "boot/1/10")


def test_a_batch_of_the_same_run_or_of_a_former_release_is_not_spared() -> None:
    assert not is_spared(TWO, "boot/1/10")
    assert not is_spared(replace(TWO, begun_by=""), "boot/1/10")


def test_a_stop_is_noted_while_the_batch_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "LOOK_S", 0.001)
    noted = threading.Event()
    attempts_left = [OSError("no space"), None]

    def note() -> None:
        error = attempts_left.pop(0)
        if error is not None:
            raise error
        noted.set()

    with noting_stop(lambda: True, note):
        assert noted.wait(PATIENCE)

    assert attempts_left == []


def test_no_stop_is_noted_where_there_was_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "LOOK_S", 0.001)
    asked, noted = threading.Event(), []

    def is_stopping() -> bool:
        asked.set()
        return False

    with noting_stop(is_stopping, lambda: noted.append(1)):
        assert asked.wait(PATIENCE)

    assert noted == []
