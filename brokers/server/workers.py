"""Runs work that would block the event loop for too long in a separate process.

Knows processes and not their work: bytes in, bytes out. A caller owns its process: a call that is
cancelled, or runs out of time, kills the process and waits for its end.
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
# How long a streamed process may take to accept its job, even on a machine that is short of
# resources.
START_SECONDS: Final = 30.0
# A process that is silent for this long hangs in a disk operation; it would report its progress.
QUIET_SECONDS: Final = 60.0
# How long to wait for the end of a killed process: one that hangs in a disk operation neither runs
# on nor ends.
KILL_SECONDS: Final = 5.0
# The length to which a process's error output is cut, from its end.
MAX_WORDS: Final = 1_000
_READ_BYTES: Final = 64 * 1024
_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120


async def clean(job: bytes, *, seconds: float = CLEANING_SECONDS) -> bytes:
    """Run one job in the cleaning process and return its answer; WorkerFailed says why not."""
    return await run(clean_worker.__name__, job, seconds=seconds)


async def run(module: str, job: bytes, *, seconds: float) -> bytes:
    """Run a module with this process's id as argument and its job on standard input."""
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
    """Run a module like `run`, and yield its answer in pieces, as it comes.

    WorkerFailed after the last piece if it failed. The process is killed at the end of the block.
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
    """Start a process that has ended after the block, in any case."""
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
    # A process that ends before it has read everything reports the reason itself.
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
