"""Standard input that a signal ends, wherever in the process the signal arrives."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.standard_input import StandardInput, interruptible


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """The reading and the writing end of a pipe."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_blocks_come_as_they_were_written(ends: tuple[int, int]) -> None:
    reading, writing = ends

    with interruptible(reading) as stream:
        os.write(writing, b"one")
        first = stream.read1(100)
        os.write(writing, b"two and more")
        second = stream.read1(3)

    assert (first, second) == (b"one", b"two")


def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"all")

    with path.open("rb") as file, interruptible(file.fileno()) as stream:
        assert [stream.read1(100), stream.read1(100)] == [b"all", b""]


def test_a_signal_that_interrupts_no_system_call_ends_the_wait(ends: tuple[int, int]) -> None:
    # Taken by another thread, it leaves the main thread in its system call, as one does that comes
    # an instant before that call.
    def interrupt() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGINT, stop)
    thread = threading.Thread(target=interrupt)
    try:
        with interruptible(ends[0]) as stream, pytest.raises(KeyboardInterrupt):
            wait_after(thread.start, stream)
    finally:
        signal.signal(signal.SIGINT, former)
        thread.join()


def wait_after(start: Callable[[], None], stream: StandardInput) -> None:
    start()
    stream.read1(100)


def test_signals_wake_nobody_afterwards(ends: tuple[int, int]) -> None:
    with interruptible(ends[0]):
        pass

    assert signal.set_wakeup_fd(-1) == -1
