"""What can go wrong with files, as types that say who must act.

Knows no protocol beyond error codes. Three answers are possible: the client retries or gives up
(a `KafkaError`), the partition is damaged (`StorageCorrupt`), or the whole log dir can no longer be
trusted (`LogDirFailed`). Anything else that escapes this room is a bug.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from brokers.protocol.errors import ErrorCode, KafkaError

# Both mean "no room": the second is a quota, which the operator lifts in the same way.
OUT_OF_SPACE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
# The dir may not be written at the moment: mounted read-only, or its permissions changed.
NOT_WRITABLE_ERRNOS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
# The process or the machine has no descriptor left. No call but `open` says so.
TOO_MANY_OPEN_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE})


class StorageError(Exception):
    """Any failure of files that is not an answer to a client."""


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
    """The log in `folder` was left as it was, because of `holder`, who still uses its files.

    The caller asks again once the flush is taken back, or, for a truncation, the readers are done.
    """

    def __init__(self, folder: str, holder: str) -> None:
        super().__init__(f"{folder} is still in use: {holder}")
        self.folder = folder
        self.holder = holder


class LogDirFailed(StorageError):
    """The disk refused `operation` on `path`; the log dir is finished, and nothing is retried.

    After a failed fsync the kernel marks the lost pages clean, so a second fsync would lie: the
    only safe answer is to stop serving from this dir.
    """

    def __init__(self, path: str, operation: str, cause: OSError) -> None:
        super().__init__(f"{operation} of {path} failed: {cause.strerror or cause}")
        self.path = path
        self.operation = operation
        self.cause = cause


class OutOfSpace(KafkaError):
    """The disk is full; what was half written was cut back and the log is whole as before.

    Its code is retriable: a client that waits for retention or an operator succeeds later.
    """

    def __init__(self, path: str, operation: str) -> None:
        message = f"no space left on the disk for {operation} of {path}"
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)
        self.path = path
        self.operation = operation


class NotWritable(OutOfSpace):
    """The disk takes nothing at the moment; to a log that is as good as having no room."""

    def __init__(self, path: str, operation: str, cause: OSError) -> None:
        super().__init__(path, operation)
        self.message = f"no permission for {operation} of {path}: {cause.strerror}"
        self.args = (self.message,)


class TooManyOpenFiles(KafkaError):
    """A file could not be opened because too many are; it is retriable, and no disk is to blame."""

    def __init__(self, path: str, operation: str) -> None:
        message = f"too many open files for {operation} of {path}"
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)
        self.path = path
        self.operation = operation


class OffsetOutOfRange(KafkaError):
    """A reader asked for an `offset` outside of `start` to `end`; `end` itself may be asked."""

    def __init__(self, offset: int, start: int, end: int) -> None:
        message = f"offset {offset} is outside the log, which holds {start} to {end}"
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        self.offset = offset
        self.start = start
        self.end = end


def is_refusal(error: OSError) -> bool:
    """Whether a call was refused for want of what comes back: space, permission, descriptors."""
    return error.errno in OUT_OF_SPACE_ERRNOS | NOT_WRITABLE_ERRNOS | TOO_MANY_OPEN_ERRNOS


def write_failed(
    path: str, operation: str, cause: OSError
) -> OutOfSpace | TooManyOpenFiles | LogDirFailed:
    """The error to raise for a failed write: what comes back heals, all else ends the log dir.

    Never for fsync: there even ENOSPC means that bytes already accepted are gone.
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
    """Raises a KafkaError for what is refused within; other errors of the disk pass as they are."""
    try:
        yield
    except OSError as error:
        if is_refusal(error):
            raise write_failed(path, operation, error) from error
        raise
