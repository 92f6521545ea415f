"""Settles the files of a partition folder after any kind of shutdown, before a log is opened.

Uses names and suffixes; reads a file only to find the end offset of a swap. Every step can be
repeated, so after a crash in the middle the next start continues.
"""

import os
from collections import deque
from dataclasses import dataclass

from brokers.storage import names
from brokers.storage.files import Files
from brokers.storage.headers import walk
from brokers.storage.names import OffsetFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFiles:
    """The segments of a folder: their base offsets in order, and every name that is there."""

    bases: list[int]
    names: frozenset[str]

    def has(self, base_offset: int, suffix: str) -> bool:
        return names.offset_file(base_offset, suffix) in self.names


def settle_folder(files: Files, folder: str) -> FolderFiles:
    """Finish or undo pending operations: deletions, cleanings, swaps, half-written files."""
    found = files.list_folder(folder)
    parsed = {name: file for name in found if (file := names.parse_offset_file(name)) is not None}
    dropped = {name for name in found if name.endswith((names.TEMPORARY, names.DELETED))}
    cleaned = {name: file for name, file in parsed.items() if file.marker == names.CLEANED}
    dropped |= set(cleaned)
    # The cleaner renames a group to .swap when all of its files are complete, its log last, and the
    # next group after that one has replaced its sources: oldest first here, newest first where
    # Kafka splits. Either way a swap at or above an unfinished file has not replaced anything yet.
    unfinished = min((file.offset for file in cleaned.values()), default=None)
    swaps = {name: file for name, file in parsed.items() if file.marker == names.SWAP}
    if unfinished is not None:
        dropped |= {name for name, file in swaps.items() if file.offset >= unfinished}
    kept = {name: file for name, file in parsed.items() if name not in dropped}
    dropped |= _replaced_by_swaps(files, folder, kept)
    logs = {file.offset for name, file in kept.items() if _is_log(file) and name not in dropped}
    dropped |= {
        name
        for name, file in kept.items()
        if file.suffix in names.SEGMENT_SUFFIXES
        and file.marker in {"", names.SWAP}  # others are unrelated, or were set aside
        and file.offset not in logs
    }
    for name in dropped:
        files.unlink(os.path.join(folder, name))
    renamed = _finish_swaps(files, folder, [name for name in swaps if name not in dropped])
    if dropped or renamed:
        files.sync_folder(folder)
    present = frozenset(name.removesuffix(names.SWAP) for name in found if name not in dropped)
    return FolderFiles(bases=sorted(logs), names=present)


def _is_log(file: OffsetFile) -> bool:
    return file.suffix == names.LOG and file.marker in {"", names.SWAP}


def _replaced_by_swaps(files: Files, folder: str, kept: dict[str, OffsetFile]) -> set[str]:
    """Return the files of the old segments whose records are all in a complete swap."""
    replaced = set()
    for swap_name, swap in kept.items():
        if swap.suffix != names.LOG or swap.marker != names.SWAP:
            continue
        end = max(swap.offset + 1, _end_offset(files, os.path.join(folder, swap_name)))
        replaced |= {
            name
            for name, file in kept.items()
            if not file.marker
            and file.suffix in names.SEGMENT_SUFFIXES
            and swap.offset <= file.offset < end
        }
    return replaced


def _end_offset(files: Files, path: str) -> int:
    fd = files.open(path, os.O_RDONLY)
    try:
        # Only the last one is kept: a gigabyte of small batches has millions of headers.
        last = deque(walk(files, fd, path, 0, files.size(fd)), maxlen=1)
        return last[0].last_offset + 1 if last else 0
    finally:
        files.close(fd)


def _finish_swaps(files: Files, folder: str, swaps: list[str]) -> bool:
    # The log goes last: while it is still a swap, the next start repeats this.
    for name in sorted(swaps, key=lambda name: names.LOG + names.SWAP in name):
        path = os.path.join(folder, name)
        files.rename(path, path.removesuffix(names.SWAP))
    return bool(swaps)
