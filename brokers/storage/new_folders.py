"""Creates many partition folders at once, durably, with few waits for the disk.

Handles paths and the bytes of `partition.metadata`, not their meaning. All syncs of a round are
requested together: the first one writes nearly everything, and the others find little left to do.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from brokers.storage.errors import refusals
from brokers.storage.files import Files, write_all
from brokers.storage.names import PARTITION_METADATA, TEMPORARY


class NewFolder(NamedTuple):
    """A partition folder to create, and the content of its `partition.metadata`."""

    path: str
    metadata: bytes


def make_folders(files: Files, parent: str, folders: Sequence[NewFolder]) -> None:
    """Make folders in `parent`; they and their content are on the disk on return.

    KafkaError for want of room, and then some may be there, whole or not; the call can be repeated.
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
    """Make one folder and write its metadata, under a temporary name."""
    path, metadata = folder
    with refusals(path, "create"):
        # A full disk may have interrupted an earlier creation.
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
