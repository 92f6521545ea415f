"""Folders of new partitions, many at a time: made, named and on the disk in few waits.

Knows paths and the bytes of `partition.metadata`, not what they mean. All that one file system
call after the other would wait for is asked of the disk together: the first sync of each round
brings nearly everything with it, and the others find little left to do.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from brokers.storage.errors import refusals
from brokers.storage.files import Files, write_all
from brokers.storage.names import PARTITION_METADATA, TEMPORARY


class NewFolder(NamedTuple):
    """A partition folder that is to be there, and what its `partition.metadata` is to say."""

    path: str
    metadata: bytes


def make_folders(files: Files, parent: str, folders: Sequence[NewFolder]) -> None:
    """Makes folders in `parent`; they and what is in them are on the disk when this returns.

    KafkaError for want of room, and then some may be there, whole or not: it can be done again.
    """
    opened: list[int] = []
    try:
        for folder in folders:
            opened.append(_begin(files, folder))  # noqa: PERF401 - closed also after a refusal
        for fd in opened:
            files.datasync(fd)
    finally:
        for fd in opened:
            files.close(fd)
    for path, _metadata in folders:
        note = os.path.join(path, PARTITION_METADATA)
        with refusals(path, "create"):
            files.rename(note + TEMPORARY, note)
    for path, _metadata in folders:
        files.sync_folder(path)
    files.sync_folder(parent)


def _begin(files: Files, folder: NewFolder) -> int:
    """Makes one folder and writes its note, under a name that does not count yet."""
    path, metadata = folder
    with refusals(path, "create"):
        # A creation that a full disk stopped on its way has left it.
        with suppress(FileExistsError):
            files.make_folder(path)
        note = os.path.join(path, PARTITION_METADATA + TEMPORARY)
        fd = files.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            write_all(files, fd, metadata)
        except OSError:
            files.close(fd)
            raise
    return fd
