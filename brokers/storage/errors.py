"""Defines the errors of files by who has to act on them.

There are three cases: the client retries or gives up (a `KafkaError`), the partition is damaged
(`StorageCorrupt`), or the whole log dir can no longer be trusted (`LogDirFailed`). Any other
exception that leaves this package is a bug.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from brokers.protocol.errors import ErrorCode, KafkaError

# Both mean "no room": the second is a quota, which the operator lifts in the same way.
OUT_OF_SPACE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
# The dir may not be written at the moment: mounted read-only, or its permissions changed.
NOT_WRITABLE_ERRNOS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
# The process or the machine has no descriptor left. Only `open` raises these.
TOO_MANY_OPEN_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE})


class StorageError(Exception):
    """A failure of files that is not a response to a client."""


class StorageCorrupt(StorageError):
    """Bytes on disk that contradict their format: at `position` in `path`, because of `reason`.

    For derived files (indexes, snapshots, checkpoints) the owner catches it and rebuilds; for log
    data it is media damage and takes the partition out of service.
    """

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} is corrupt at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class LogBusy(StorageError):
    """The log in `folder` is unchanged, because `holder` still uses its files.

    The caller retries after the flush has finished or, for a truncation, after the readers.
    """

    def __init__(self, folder: str, holder: str) -> None:
        super().__init__(f"{folder} is still in use: {holder}")
        self.folder = folder
        self.holder = holder


class LogDirFailed(StorageError):
    """The disk refused `operation` on `path`: the log dir has failed, and nothing is retried.

    After a failed fsync the kernel marks the lost pages clean, so a second fsync would report a
    false success: the only safe reaction is to stop serving from this dir.
    """

    def __init__(self, path: str, operation: str, cause: OSError) -> None:
        super().__init__(f"{operation} of {path} failed: {cause.strerror or cause}")
        self.path = path
        self.operation = operation
        self.cause = cause


class Refused(KafkaError):
    """Something that a write needs is not there for now; the log is as it was before.

    Its code is retriable: a client that waits for retention or an operator succeeds later. The
    message is for clients, which are not told where the broker keeps its files; its log is.
    """

    def __init__(self, message: str, path: str, operation: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)
        self.path = path
        self.operation = operation

    def __str__(self) -> str:
        place = f": {self.operation} of {self.path}" if self.path else ""
        return super().__str__() + place


class OutOfSpace(Refused):
    """The disk is full; a partial write was cut back."""

    def __init__(self, path: str, operation: str) -> None:
        super().__init__("no space left on the broker's disk", path, operation)


class DiskNearlyFull(OutOfSpace):
    """The last room of the disk is kept for what makes room again; the log is as it was before."""

    def __init__(self, free_bytes: int, least_bytes: int) -> None:
        super().__init__("", "append")
        self.message = (
            f"the broker's disk is full: {free_bytes} bytes are free, and records are taken again "
            f"from {least_bytes} on; delete topics, shorten their retention, or make room on it"
        )
        self.args = (self.message,)


class NotWritable(OutOfSpace):
    """The disk is not writable at the moment; a log handles it like a full disk."""

    def __init__(self, path: str, operation: str, cause: OSError) -> None:
        super().__init__(path, operation)
        self.message = f"the broker has no permission to write: {cause.strerror}"


class TooManyOpenFiles(Refused):
    """Too many files are open to open another; the disk is not at fault."""

    def __init__(self, path: str, operation: str) -> None:
        super().__init__("the broker has too many open files", path, operation)


class OffsetOutOfRange(KafkaError):
    """A read of an `offset` outside of `start` to `end`; `end` itself is allowed."""

    def __init__(self, offset: int, start: int, end: int) -> None:
        message = f"offset {offset} is outside the log, which holds {start} to {end}"
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        self.offset = offset
        self.start = start
        self.end = end


def is_refusal(error: OSError) -> bool:
    """Tell whether a call lacked what may come back: space, permission or descriptors."""
    return error.errno in OUT_OF_SPACE_ERRNOS | NOT_WRITABLE_ERRNOS | TOO_MANY_OPEN_ERRNOS


def write_failed(
    path: str, operation: str, cause: OSError
) -> OutOfSpace | TooManyOpenFiles | LogDirFailed:
    """Return the error for a failed write: LogDirFailed unless the cause may go away by itself.

    Never for fsync: there, even ENOSPC means that accepted bytes are lost.
    """
    if cause.errno in TOO_MANY_OPEN_ERRNOS:
        return TooManyOpenFiles(path, operation)
    if cause.errno in OUT_OF_SPACE_ERRNOS:
        return OutOfSpace(path, operation)
    if cause.errno in NOT_WRITABLE_ERRNOS:
        return NotWritable(path, operation, cause)
    return LogDirFailed(path, operation, cause)


@contextmanager
def refusals(path: str, operation: str) -> Iterator[None]:
    """Convert temporary refusals within the block to KafkaError; other disk errors pass through."""
    try:
        yield
    except OSError as error:
        if is_refusal(error):
            raise write_failed(path, operation, error) from error
        raise
