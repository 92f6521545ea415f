"""Output is kept in files of bounded size, whole; the terminal gets what is telling, and clean."""

import asyncio
import os
from pathlib import Path

import pytest

from brokers.supervisor.output import LAST_LINES, LogFile, Pump, is_telling, printable

NOW_MS = 1_700_000_000_250
NOW = b"2023-11-14T22:13:20.250Z"


def test_a_log_makes_room_and_keeps_a_bounded_past(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "x.log", max_bytes=10, old_files=2)

    for number in range(5):
        log.write(b"line %d\n" % number)
    log.close()

    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert kept == {"x.log": b"line 4\n", "x.log.1": b"line 3\n", "x.log.2": b"line 2\n"}


def test_a_log_goes_on_where_an_earlier_run_ended(tmp_path: Path) -> None:
    for word in (b"one\n", b"two\n"):
        log = LogFile(tmp_path / "x.log")
        log.write(word)
        log.close()

    assert (tmp_path / "x.log").read_bytes() == b"one\ntwo\n"


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "missing" / "x.log")

    log.write(b"lost\n")

    assert not (tmp_path / "missing").exists()


def pumped(tmp_path: Path, *blocks: bytes) -> tuple[Pump, list[str], bytes]:
    """Write blocks into a pump and read what came out: itself, the lines shown, the file."""
    shown: list[str] = []

    async def scenario() -> Pump:
        reading, writing = os.pipe()
        log = LogFile(tmp_path / "x.log")
        pump = Pump(reading, log, shown.append, now_ms=lambda: NOW_MS)
        for block in blocks:
            os.write(writing, block)
        os.close(writing)
        await asyncio.wait_for(pump.ended, 5)
        log.close()
        return pump

    pump = asyncio.run(scenario())
    return pump, shown, (tmp_path / "x.log").read_bytes()


def test_lines_are_put_together_and_bytes_kept_as_they_are(tmp_path: Path) -> None:
    _, shown, kept = pumped(tmp_path, b"one\ntw", b"o\n\xff", b"end")

    assert shown == ["one", "two", "�end"]
    assert kept == b"%(t)b one\n%(t)b two\n%(t)b \xffend" % {b"t": NOW}


def test_the_last_lines_are_remembered(tmp_path: Path) -> None:
    pump, _, _ = pumped(tmp_path, b"".join(b"%d\n" % number for number in range(100)))

    assert list(pump.last_lines) == [str(number) for number in range(100 - LAST_LINES, 100)]


def test_an_endless_line_is_cut_for_people_only(tmp_path: Path) -> None:
    _, shown, kept = pumped(tmp_path, b"x" * 60_000, b"\nnext\n")

    assert shown == ["x" * 500, "next"]
    assert len(kept) == 60_006 + 2 * len(NOW + b" ")


def test_bytes_that_steer_a_terminal_are_not_shown() -> None:
    assert printable("a\x1b[2Jb\r") == "a [2Jb"


@pytest.mark.parametrize(
    ("line", "telling"),
    [
        ('{"event": "x", "level": "info"}', False),
        ('{"event": "x", "level": "DEBUG"}', False),
        ('{"event": "x", "level": "warning"}', True),
        ('{"event": "x"}', True),
        ("{broken", True),
        ("INFO:     Application startup complete.", False),
        ("2026-11-20T06:36:25.540Z INFO connectors.tasks task.said", False),
        ("2026-11-20T06:36:25.540Z WARNING connectors.tasks task.said", True),
        ("2026-11-20T06:36:25.540Z gateway.access.audit user.created", True),
        ("ERROR:    x", True),
        ("Traceback (most recent call last):", True),
        ("[1]", True),
    ],
)
def test_information_is_for_the_file_and_the_rest_for_people_too(line: str, telling: bool) -> None:
    assert is_telling(line) is telling


@pytest.mark.parametrize(
    "line",
    [
        b'{"timestamp": "2026-11-20T06:00:00.000Z", "event": "x"}',
        b"2026-11-20T06:00:00.000Z INFO gateway: x",
        b"4711:M 20 Nov 2026 06:00:00.000 * Ready to accept connections",
        b"",
    ],
)
def test_a_line_with_its_time_stays_as_it_is(tmp_path: Path, line: bytes) -> None:
    assert pumped(tmp_path, line + b"\n")[2] == line + b"\n"


def test_each_line_of_a_traceback_gets_its_time_and_people_see_it_without(tmp_path: Path) -> None:
    _, shown, kept = pumped(tmp_path, b"Traceback (most rec", b"ent call last):\n  File x\n")

    assert kept == NOW + b" Traceback (most recent call last):\n" + NOW + b"   File x\n"
    assert shown == ["Traceback (most recent call last):", "  File x"]
