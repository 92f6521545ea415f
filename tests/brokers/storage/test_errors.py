"""Which failures heal and which end a log dir."""

import errno

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.storage.errors import (
    LogBusy,
    LogDirFailed,
    NotWritable,
    OffsetOutOfRange,
    OutOfSpace,
    StorageCorrupt,
    TooManyOpenFiles,
    write_failed,
)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_an_answer_that_clients_retry(number: int) -> None:
    error = write_failed("/d/t-0/0.log", "append", OSError(number, "full"))

    assert isinstance(error, OutOfSpace)
    assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert error.code.retriable
    assert "append of /d/t-0/0.log" in str(error)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_too_many_open_files_does_not_fail_the_disk(number: int) -> None:
    error = write_failed("/d/t-0/0.log", "roll", OSError(number, "too many"))

    assert isinstance(error, TooManyOpenFiles)
    assert error.code.retriable
    assert "roll of /d/t-0/0.log" in str(error)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_dir_that_may_not_be_written_is_an_answer_that_clients_retry(number: int) -> None:
    error = write_failed("/d/t-0/0.log", "roll", OSError(number, "not allowed"))

    assert isinstance(error, NotWritable)
    assert error.code.retriable
    assert str(error).endswith("no permission to write: not allowed: roll of /d/t-0/0.log")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.EROFS])
def test_errors_for_clients_contain_no_paths(number: int) -> None:
    error = write_failed("/d/t-0/0.log", "append", OSError(number, "refused"))

    assert isinstance(error, KafkaError)
    assert "/d/" not in error.message
    assert "append of /d/t-0/0.log" in str(error)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENODEV, errno.EBADF])
def test_any_other_failed_write_ends_the_log_dir(number: int) -> None:
    error = write_failed("/d/t-0/0.log", "append", OSError(number, "broken"))

    assert isinstance(error, LogDirFailed)
    assert str(error) == "append of /d/t-0/0.log failed: broken"
    assert error.cause.errno == number


def test_messages_name_the_value_and_the_limit() -> None:
    assert str(OffsetOutOfRange(9, 3, 7)).endswith(
        "offset 9 is outside the log, which holds 3 to 7"
    )
    assert str(LogBusy("/d/t-0", "a flush is running")).endswith("in use: a flush is running")
    assert str(StorageCorrupt("/d/x", 12, "bad CRC")) == "/d/x is corrupt at byte 12: bad CRC"
