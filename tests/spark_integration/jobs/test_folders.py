"""A session's folder goes with its process, however that ends."""

import subprocess
import sys
from pathlib import Path

from spark_integration.jobs.folders import SessionFolder

# Makes a folder, says where, and is killed before it could remove it.
KILLED = """\
import os, sys
from pathlib import Path
from spark_integration.jobs.folders import SessionFolder
print(SessionFolder(Path(sys.argv[1])).path, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_folder_is_gone_when_its_session_ends(tmp_path: Path) -> None:
    folder = SessionFolder(tmp_path)
    (folder.temporary / "x").write_bytes(b"x")

    folder.remove()

    assert not folder.path.exists()


def test_two_sessions_of_a_home_have_folders_of_their_own(tmp_path: Path) -> None:
    first, second = SessionFolder(tmp_path), SessionFolder(tmp_path)

    assert first.path != second.path
    assert first.path.exists()
    for folder in (first, second):
        folder.remove()


def test_the_next_session_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-P", "-c", KILLED, tmp_path], capture_output=True, text=True, check=False
    )
    left = Path(killed.stdout.strip())
    assert left.exists()

    folder = SessionFolder(tmp_path)

    assert not left.exists()
    folder.remove()
