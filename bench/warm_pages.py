"""Gives the kernel pages that are warm, for the page cache to take next.

A guest of a hypervisor hands memory that is free back to its host within seconds, and each page of
it costs 2 to 8 µs of CPU when it is touched again: ten times what a broker does with it. A machine
whose memory is full of page cache, as that of a broker soon is, knows nothing of this. So pages are
touched and let go right before a round that fills gigabytes of them.
"""

import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

# Half of this is not enough: what is freed last is not always taken first.
WARM_BYTES: Final = 4 * 2**30
# Where little is free, little of it is cold; a share of it must stay for everybody else.
_MAX_SHARE: Final = 0.75
_CGROUP: Final = Path("/sys/fs/cgroup")


def warm_pages() -> None:
    """Touches memory and frees it: some seconds on a guest whose host had taken it."""
    size = min(WARM_BYTES, int(_free_bytes() * _MAX_SHARE))
    if size >= mmap.PAGESIZE:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()


def _free_bytes() -> int:
    """What the machine has free, or a container where it may have less."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # No such file, or the word "max", where there is no limit.
    with suppress(OSError, ValueError):
        limit = int((_CGROUP / "memory.max").read_text(encoding="ascii"))
        used = int((_CGROUP / "memory.current").read_text(encoding="ascii"))
        free = max(0, min(free, limit - used))
    return free
