"""A process that works for a broker: its answer, its complaints, and that none is left behind."""

import ast
import asyncio
import os
import sys
import threading
from pathlib import Path

import pytest

from brokers.replication.compactor import WorkerFailed
from brokers.server import workers
from brokers.server.workers import clean, run, streamed
from brokers.storage.clean_worker import MAX_MESSAGE_BYTES, REFUSED, decode_result, encode_job
from tests.builders.cleaning import (
    compacted,
    compacted_log,
    fill_keys,
    latest,
    plan,
    rows_of,
    swap_cleaned,
)
from tests.builders.logs import NOW_MS

ROWS = [(b"k%d" % (number % 5), b"v" * 40) for number in range(200)]
SECONDS = 30.0


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module `work`, which `run` finds."""
    monkeypatch.setattr(workers, "_ROOT", str(tmp_path))
    return tmp_path / "work.py"


def test_a_log_is_cleaned_in_a_process_of_its_own(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, compacted(segment_bytes=2_000))
    fill_keys(log, ROWS)
    truth, size, cleaning = latest(rows_of(log)), log.size_bytes, plan(log)

    answer = asyncio.run(clean(encode_job(cleaning)))

    assert swap_cleaned(log, cleaning, decode_result(answer), NOW_MS)
    assert latest(rows_of(log)) == truth
    assert log.size_bytes < size / 4


def test_what_is_no_job_comes_back_as_the_words_of_the_process() -> None:
    with pytest.raises(WorkerFailed, match="it ended with 1: CleaningFailed: the message") as one:
        asyncio.run(clean(b"no json"))

    assert not one.value.is_refused


def test_a_process_inherits_nothing_of_the_brokers_environment(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://samsa:sekret@db.test/samsa")
    monkeypatch.setenv("SAMSA_SECRET_FILE", "/a/file")
    module.write_text("import os; print(sorted(os.environ))\n", encoding="ascii")

    names = asyncio.run(run("work", b"", seconds=SECONDS)).decode()

    # What Python sets by itself where there is no locale.
    assert set(ast.literal_eval(names)) <= {"LC_CTYPE"}


def test_a_process_knows_for_whom_it_works_and_gets_all_of_a_long_job(module: Path) -> None:
    module.write_text(
        "import sys\n"
        "job = sys.stdin.buffer.read()\n"
        "sys.stderr.write('e' * 300_000)\n"
        "sys.stdout.write(f'{sys.argv[1]} {len(job)}')\n"
    )

    answer = asyncio.run(run("work", b"j" * 1_000_000, seconds=SECONDS))

    assert answer == f"{os.getpid()} 1000000".encode()


def test_an_answer_without_end_is_cut(module: Path) -> None:
    module.write_text(f"import sys\nsys.stdout.write('a' * {2 * MAX_MESSAGE_BYTES})\n")

    answer = asyncio.run(run("work", b"", seconds=SECONDS))

    assert len(answer) == MAX_MESSAGE_BYTES + 1


def test_a_process_that_reads_no_job_says_why(module: Path) -> None:
    module.write_text("import sys\nsys.stderr.write('one\\ntwo\\n')\nsys.exit(7)\n")

    with pytest.raises(WorkerFailed, match=r"it ended with 7: two$"):
        asyncio.run(run("work", b"j" * 1_000_000, seconds=SECONDS))


def test_a_full_disk_is_told_apart(module: Path) -> None:
    module.write_text(f"import sys\nsys.exit({REFUSED})\n")

    with pytest.raises(WorkerFailed, match="nothing was said") as caught:
        asyncio.run(run("work", b"", seconds=SECONDS))

    assert caught.value.is_refused


def test_a_thread_too_many_is_as_a_process_too_many(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module.write_text("print('made', flush=True)\n")

    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)

    with pytest.raises(WorkerFailed, match="it cannot be started: can't start new thread") as one:
        asyncio.run(run("work", b"", seconds=SECONDS))

    assert one.value.is_refused


def test_a_process_that_was_killed_is_no_answer(module: Path) -> None:
    module.write_text("import os\nprint('half', flush=True)\nos.kill(os.getpid(), 9)\n")

    with pytest.raises(WorkerFailed, match="it ended with -9"):
        asyncio.run(run("work", b"", seconds=SECONDS))


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


# Tells its number, and never ends.
ENDLESS = (
    "import os, sys, time\nopen(sys.stdin.read(), 'w').write(str(os.getpid()))\ntime.sleep(900)"
)


def number_of(told: Path) -> int:
    text = told.read_text() if told.exists() else ""
    return int(text or 0)


def test_one_that_takes_too_long_is_killed(module: Path, tmp_path: Path) -> None:
    module.write_text(ENDLESS)
    told = tmp_path / "pid"

    with pytest.raises(WorkerFailed, match="longer than 2 s"):
        asyncio.run(run("work", str(told).encode(), seconds=2))

    assert has_ended(number_of(told))


def test_one_whose_broker_stops_is_killed_before_the_call_returns(
    module: Path, tmp_path: Path
) -> None:
    module.write_text(ENDLESS)
    told = tmp_path / "pid"

    async def stopped() -> None:
        task = asyncio.ensure_future(run("work", str(told).encode(), seconds=SECONDS))
        async with asyncio.timeout(SECONDS):
            while not number_of(told):  # noqa: ASYNC110 - a file is all that it tells
                await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert has_ended(number_of(told))

    asyncio.run(stopped())


def test_a_program_that_is_not_there_is_not_the_jobs_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with pytest.raises(WorkerFailed, match="cannot be started") as caught:
        asyncio.run(clean(b""))

    assert caught.value.is_refused


def test_an_answer_that_is_passed_on_comes_while_the_process_works(module: Path) -> None:
    module.write_text(
        "import sys\n"
        "print(sys.stdin.read(), flush=True)\n"
        "import threading; threading.Event().wait()\n",
        encoding="ascii",
    )

    async def story() -> None:
        async with streamed("work", b"a job") as pieces:
            assert await anext(pieces) == b"a job\n"

    asyncio.run(story())  # which ends, since the process is killed with the block


def test_a_process_that_says_nothing_for_long_is_given_up(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "QUIET_SECONDS", 0.1)
    module.write_text("import threading; threading.Event().wait()\n", encoding="ascii")

    async def story() -> None:
        async with streamed("work", b"") as pieces:
            with pytest.raises(WorkerFailed, match="said nothing for"):
                await anext(pieces)

    asyncio.run(story())


def test_a_process_that_takes_no_job_is_given_up(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "START_SECONDS", 0.1)
    module.write_text("import threading; threading.Event().wait()\n", encoding="ascii")

    async def story() -> None:
        with pytest.raises(WorkerFailed, match="did not take its job"):
            async with streamed("work", b"x" * 10_000_000):
                pass

    asyncio.run(story())
