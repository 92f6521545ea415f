"""Moves bytes that a log cannot serve out of its way, to where an operator can look at them.

Knows files and no causes. A name that ends in `.damaged` is read by nobody, here or in Apache
Kafka, and is never used twice: whoever needs the room back removes it by hand.
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
    """Renames a segment that nobody has seen yet; its name wants a sync of the folder."""
    segment.release()
    path, *derived = segment.paths()
    # The log first: what is derived from no log is dropped by the next start.
    target = unused_name(handles.files, path)
    handles.files.rename(path, target)
    for other in derived:
        with suppress(FileNotFoundError):
            handles.files.unlink(other)
    return target


def copy_rest(handles: Handles, segment: Segment, position: int) -> str:
    """Copies all from `position` on; the copy is on the disk when this returns."""
    files, fd = handles.files, handles.open(segment.file)
    target = unused_name(files, segment.file.path)
    copy = files.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        while data := files.pread(fd, _COPY_BYTES, position):
            write_all(files, copy, data)
            position += len(data)
        handles.sync(copy, target)
    except OSError:
        # The disk may be full, and half a copy helps nobody.
        files.unlink(target)
        raise
    finally:
        files.close(copy)
    handles.sync_folder(os.path.dirname(target))
    return target


def set_damage_aside(handles: Handles, segment: Segment, folder: str) -> list[str]:
    """Moves all behind the end of `segment` into files that end in `.damaged`, and cuts it off."""
    files, fd = handles.files, handles.open(segment.file)
    # What needs room comes first, while all can still be left as it is.
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
    """Where to move `path`: `x.log.damaged`, or `x.log.2.damaged` if an older damage is there."""
    target = path + DAMAGED
    for number in count(2):
        if not files.exists(target):
            break
        target = f"{path}.{number}{DAMAGED}"
    return target


def _files_behind(files: Files, segment: Segment, folder: str) -> Iterator[tuple[str, bool]]:
    """The files of the segments behind `segment`, and which of them are logs."""
    for name in sorted(files.list_folder(folder), reverse=True):
        file = names.parse_offset_file(name)
        if file is None or file.marker or file.offset <= segment.base_offset:
            continue
        if file.suffix in names.SEGMENT_SUFFIXES:
            yield os.path.join(folder, name), file.suffix == names.LOG
