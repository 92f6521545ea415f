"""Reads and writes index files, independent of what their entries mean.

Relies on two properties: entries have one size, and no entry is all zeros. Both hold for Kafka's
offset and time indexes, whose files end in zeros while Kafka has them preallocated.
"""

import os
from typing import Final

from brokers.storage.files import Buffer, Files

# Kafka's default is 10 MiB per index. Bytes beyond this are not read: a lookup that ends early only
# walks further in the log, while a file grown by damage must not become an allocation.
MAX_INDEX_BYTES: Final = 64 * 1024 * 1024


def read_entries(files: Files, path: str, entry_size: int) -> bytes:
    """Return the whole entries of an index file, without trailing zeros; empty if it is missing."""
    try:
        fd = files.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        data = files.pread(fd, min(files.size(fd), MAX_INDEX_BYTES), 0)
    finally:
        files.close(fd)
    whole = len(data) - len(data) % entry_size
    # The last entry's own low bytes may be zero, so the end of the data is rounded up to an entry.
    used = -(-len(data.rstrip(b"\0")) // entry_size) * entry_size
    return data[: min(whole, used)]


def write_entries(files: Files, path: str, data: Buffer, position: int) -> None:
    """Replace everything behind the first `position` bytes of an index file with `data`."""
    fd = files.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        # The rest is Kafka's preallocation, the remainder of a truncated log, or a failed write.
        if files.size(fd) != position:
            files.truncate(fd, position)
        view = memoryview(data).cast("B")
        written = 0
        while written < len(view):
            written += files.pwrite(fd, view[written:], position + written)
    finally:
        files.close(fd)
