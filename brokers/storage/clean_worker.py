"""Runs one cleaning as a process: `python -m brokers.storage.clean_worker <pid>`.

Reads one job as JSON from standard input and writes its result as JSON to standard output. Exits
with 0 only with a result, else with one line of the reason on standard error. It takes no lock and
opens only files that the job names; it lowers its priority below the broker, its parent, whose pid
is its argument, and ends with it. The broker's half of the format is here, too.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, BinaryIO, Final

from brokers.protocol.errors import KafkaError
from brokers.storage.cleaning import Cleaned, CleaningFailed, Job, Result, Source, clean
from brokers.storage.compaction import Cleaning
from brokers.storage.errors import OutOfSpace, StorageError, TooManyOpenFiles, is_refusal
from brokers.storage.files import Files, LocalFiles

# A job names 10,000 segments at most, a result no more.
MAX_MESSAGE_BYTES: Final = 8 * 1024 * 1024
NICENESS: Final = 10
# Exit codes without a result: permanent, or for want of space or descriptors, which come back.
FAILED: Final = 1
REFUSED: Final = 2


class ParentGone(Exception):
    """The parent process has ended; a new broker may be using the folder."""


def encode_job(cleaning: Cleaning) -> bytes:
    """Return the worker's input for a cleaning."""
    config = cleaning.config
    job = Job(
        folder=cleaning.folder,
        sources=(),
        first_dirty=cleaning.first_dirty,
        end=cleaning.end,
        now_ms=cleaning.now_ms,
        segment_bytes=config.segment_bytes,
        index_interval_bytes=config.index_interval_bytes,
        segment_index_bytes=config.segment_index_bytes,
        delete_retention_ms=config.delete_retention_ms,
        producer_expiration_ms=config.producer_expiration_ms,
        max_decompressed_bytes=config.rules.max_decompressed_bytes,
    )
    # Short lists, since there may be thousands, and the event loop waits for this.
    sources = [
        (segment.base_offset, size, segment.txn_index is not None)
        for segment, size in zip(cleaning.segments, cleaning.sizes, strict=True)
    ]
    return json.dumps({**asdict(job), "sources": sources}).encode()


def decode_job(data: bytes) -> Job:
    """Return the job that the worker reads; CleaningFailed if it is invalid."""
    fields = _fields(data)
    try:
        sources = [
            Source(base=base, size=size, is_whole=is_whole)
            for base, size, is_whole in fields.pop("sources")
        ]
        return Job(sources=sources, **fields)
    except (KeyError, TypeError, ValueError) as error:
        raise CleaningFailed("the job", f"it is malformed: {error}") from error


def encode_result(result: Result) -> bytes:
    """Return the worker's output."""
    return json.dumps(asdict(result)).encode()


def decode_result(data: bytes) -> Result:
    """Return the result that the broker reads; CleaningFailed if it is invalid."""
    fields = _fields(data)
    try:
        groups = [Cleaned(**group) for group in fields.pop("groups")]
        return Result(groups=groups, **fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise CleaningFailed("the result", f"it is malformed: {error}") from error


def work(files: Files, source: BinaryIO, target: BinaryIO, *, parent: int) -> None:
    """Run the one job in `source` while the parent process lives."""

    def pulse() -> None:
        # Checked at each batch, at negligible cost: another broker may start at any time.
        if os.getppid() != parent:
            raise ParentGone("the broker is gone")

    job = decode_job(source.read(MAX_MESSAGE_BYTES + 1))
    target.write(encode_result(clean(files, job, pulse)))
    target.flush()


def main() -> int:
    """Run the worker; return its exit code."""
    os.nice(NICENESS)
    try:
        parent = int(sys.argv[1])
        work(LocalFiles(), sys.stdin.buffer, sys.stdout.buffer, parent=parent)
    except (StorageError, KafkaError, OSError, ParentGone) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}".replace("\n", " ").strip() + "\n")
        return REFUSED if _comes_again(error) else FAILED
    return 0


def _comes_again(error: Exception) -> bool:
    """Tell whether the missing resource may be there at the next try."""
    if isinstance(error, OSError):
        return is_refusal(error)
    return isinstance(error, OutOfSpace | TooManyOpenFiles)


def _fields(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_MESSAGE_BYTES:
        raise CleaningFailed("the message", f"it exceeds {MAX_MESSAGE_BYTES} bytes")
    try:
        fields = json.loads(data)
    except ValueError as error:
        raise CleaningFailed("the message", f"it is not JSON: {error}") from error
    if not isinstance(fields, Mapping):
        raise CleaningFailed("the message", f"it is {type(fields).__name__}, not an object")
    return dict(fields)


if __name__ == "__main__":
    sys.exit(main())
