"""Moves bytes that a log cannot serve into files that an operator can inspect.

Names that end in `.damaged` are never read, by Samsa or Apache Kafka, and never used twice:
operators who need the room remove them by hand.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Final

from brokers.storage import names
from brokers.storage.files import Files, write_all
from brokers.storage.handles import Handles
from brokers.storage.segment import Segment

DAMAGED: Final = ".damaged"
_COPY_BYTES: Final = 1024 * 1024


def set_segment_aside(handles: Handles, segment: Segment) -> str:
    """Rename a segment that was never served; its name needs a sync of the folder."""
    segment.release()
    path, *derived = segment.paths()
    # The log first: the next start removes derived files without a log.
    target = unused_name(handles.files, path)
    handles.files.rename(path, target)
    for other in derived:
        with suppress(FileNotFoundError):
            handles.files.unlink(other)
    return target


def copy_rest(handles: Handles, segment: Segment, position: int) -> str:
    """Copy all from `position` on; the copy is on the disk on return."""
    files, fd = handles.files, handles.open(segment.file)
    target = unused_name(files, segment.file.path)
    copy = files.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        while data := files.pread(fd, _COPY_BYTES, position):
            write_all(files, copy, data)
            position += len(data)
        handles.sync(copy, target)
    except OSError:
        # The disk may be full, and half a copy is useless.
        files.unlink(target)
        raise
    finally:
        files.close(copy)
    handles.sync_folder(os.path.dirname(target))
    return target


def set_damage_aside(handles: Handles, segment: Segment, folder: str) -> list[str]:
    """Move all behind the end of `segment` into files that end in `.damaged`, and cut it off."""
    files, fd = handles.files, handles.open(segment.file)
    # Calls that need room come first, while nothing has changed yet.
    has_rest = files.size(fd) > segment.size
    moved = [copy_rest(handles, segment, segment.size)] if has_rest else []
    # The newest first, so that a crash meanwhile leaves no hole but only a shorter rest.
    for path, is_log in _files_behind(files, segment, folder):
        if is_log:
            target = unused_name(files, path)
            files.rename(path, target)
            moved.append(target)
        else:
            files.unlink(path)
    handles.sync_folder(folder)
    files.truncate(fd, segment.size)
    handles.sync(fd, segment.file.path)
    return moved


def unused_name(files: Files, path: str) -> str:
    """Return the new name: `x.log.damaged`, or `x.log.2.damaged` if there is an older one."""
    target = path + DAMAGED
    for number in count(2):
        if not files.exists(target):
            break
        target = f"{path}.{number}{DAMAGED}"
    return target


def _files_behind(files: Files, segment: Segment, folder: str) -> Iterator[tuple[str, bool]]:
    """Yield the files of the segments behind `segment`, and whether each is a log."""
    for name in sorted(files.list_folder(folder), reverse=True):
        file = names.parse_offset_file(name)
        if file is None or file.marker or file.offset <= segment.base_offset:
            continue
        if file.suffix in names.SEGMENT_SUFFIXES:
            yield os.path.join(folder, name), file.suffix == names.LOG
