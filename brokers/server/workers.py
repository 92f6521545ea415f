"""Runs work that would hold the loop for too long in a process of its own.

Knows processes and not their work: bytes in, bytes out. Who waits is who owns: a call that is
cancelled, or whose time is over, has killed its process and seen it end.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from brokers.replication.compactor import WorkerFailed
from brokers.storage import clean_worker

# A log that takes longer would keep all others waiting.
CLEANING_SECONDS: Final = 600.0
# A process whose answer is passed on as it comes takes its job at once, or never: it may begin in a
# machine that is short of everything.
START_SECONDS: Final = 30.0
# One that says nothing for so long stands in a call to a disk; it would tell its progress.
QUIET_SECONDS: Final = 60.0
# How long the end of a process that was killed is waited for: one that stands in a call to a disk
# that does not answer runs no further, and cannot end.
KILL_SECONDS: Final = 5.0
# Of what a process says why it failed: its last words.
MAX_WORDS: Final = 1_000
_READ_BYTES: Final = 64 * 1024
_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120


async def clean(job: bytes, *, seconds: float = CLEANING_SECONDS) -> bytes:
    """The answer of the process that cleans to one job; WorkerFailed says why there is none."""
    return await run(clean_worker.__name__, job, seconds=seconds)


async def run(module: str, job: bytes, *, seconds: float) -> bytes:
    """Runs a module with this process's number, its job on standard input."""
    async with _started(module) as process:
        try:
            async with asyncio.timeout(seconds):
                answer, words = await _talk(process, job)
                code = await process.wait()
        except TimeoutError:
            raise WorkerFailed(f"it took longer than {seconds:g} s and was killed") from None
    _check(code, words)
    return answer


@asynccontextmanager
async def streamed(module: str, job: bytes) -> AsyncIterator[AsyncIterator[bytes]]:
    """Runs a module like `run`, and yields its answer in pieces, as it comes.

    WorkerFailed behind the last piece where it did not end well. It is killed with the block.
    """
    async with _started(module) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        words = asyncio.create_task(_last(process.stderr))
        try:
            async with asyncio.timeout(START_SECONDS):
                await _feed(process.stdin, job)
            yield _pieces(process, words)
        except TimeoutError:
            raise WorkerFailed(f"it did not take its job in {START_SECONDS:g} s") from None
        finally:
            words.cancel()


async def _pieces(process: Process, words: asyncio.Task[bytes]) -> AsyncIterator[bytes]:
    assert process.stdout is not None
    while True:
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                data = await process.stdout.read(_READ_BYTES)
        except TimeoutError:
            raise WorkerFailed(f"it said nothing for {QUIET_SECONDS:g} s") from None
        if not data:
            break
        yield data
    _check(await process.wait(), await words)


@asynccontextmanager
async def _started(module: str) -> AsyncIterator[Process]:
    """A process that is gone behind the block, whatever happens in it."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, str(os.getpid())),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=_ROOT,
            env={},
        )
    except (OSError, RuntimeError) as error:
        # No memory, or no process, descriptor or thread (which asyncio waits with, and tells of by
        # a RuntimeError) left: none of it is the job's fault.
        raise WorkerFailed(f"it cannot be started: {error}", is_refused=True) from error
    try:
        yield process
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            with suppress(TimeoutError):
                async with asyncio.timeout(KILL_SECONDS):
                    await process.wait()


def _check(code: int, words: bytes) -> None:
    if code != 0:
        said = words.decode(errors="replace").strip().rpartition("\n")[2] or "nothing was said"
        raise WorkerFailed(f"it ended with {code}: {said}", is_refused=code == clean_worker.REFUSED)


async def _talk(process: Process, job: bytes) -> tuple[bytes, bytes]:
    """Its answer, which may be cut behind what any answer has, and the end of what it complains."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_feed(process.stdin, job))
        words = tasks.create_task(_last(process.stderr))
        answer = await _first(process.stdout, clean_worker.MAX_MESSAGE_BYTES + 1)
    return answer, words.result()


async def _feed(stdin: asyncio.StreamWriter, job: bytes) -> None:
    # One that ends before it has read all says itself why.
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(job)
        await stdin.drain()
        stdin.close()
        await stdin.wait_closed()


async def _first(stream: asyncio.StreamReader, most: int) -> bytes:
    kept = bytearray()
    while data := await stream.read(_READ_BYTES):
        kept += data[: most - len(kept)]
    return bytes(kept)


async def _last(stream: asyncio.StreamReader) -> bytes:
    kept = b""
    while data := await stream.read(_READ_BYTES):
        kept = (kept + data)[-MAX_WORDS:]
    return kept
