"""Where the workers of a run write their files: in memory where there is room, else on the disk.

Making, syncing and removing small files is more than half of the CPU time of the storage tests on a
disk. What measures time runs alone, without workers, and so writes to the disk.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/dev/shm")  # noqa: S108 (the folder made in it is the user's own)
# A whole run holds less than 1 GiB at any time, as long as the folders of passed tests are removed.
LEAST_FREE_BYTES: Final = 2 * 1024**3
# Others may pass through, not look: PostgreSQL of a root user runs as nobody.
MODE: Final = 0o711


def write_to_memory(memory: Path = MEMORY) -> None:
    """Make this process and its children take temporary folders from memory, if it has room."""
    if not memory.is_dir() or shutil.disk_usage(memory).free < LEAST_FREE_BYTES:
        return
    folder = memory / f"samsa-{os.getuid()}"
    folder.mkdir(mode=MODE, exist_ok=True)
    # In a folder for all users, another one may have been quicker.
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        return
    folder.chmod(MODE)
    os.environ["TMPDIR"] = str(folder)
    # Python remembers what it found before.
    tempfile.tempdir = None
