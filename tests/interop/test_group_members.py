"""The members of the groups' stories end with whoever started them, and so does all they started.

No broker is needed: they are pointed at a port that listens and never answers, so that every client
is in the middle of something when its teller goes away.
"""

import json
import os
import socket
import subprocess
import threading
import time

import pytest

from tests.extras import requires
from tests.interop.group_story import KINDS, PER_SECOND, ROOT, Kind
from tests.interop.homes import SESSION_MS
from tests.interop.members.journal import ABANDONED
from tests.oracles.confluent_client import SECONDS

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PAUSE_SECONDS = 0.02


def is_anybody_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=kind.name, marks=requires(*kind.needs)) for kind in KINDS]
)
def test_a_member_ends_with_its_teller_and_leaves_nobody(kind: Kind) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "{}:{}".format(*silent.getsockname())
        job = {
            "bootstrap": address,
            "topic": "story",
            "group": "story",
            "protocol": kind.protocol,
            "session_ms": SESSION_MS,
            "per_second": PER_SECOND,
            "settings": {},
        }
        member = subprocess.Popen(
            kind.command,
            cwd=ROOT,
            env=kind.whole_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert member.stdin is not None
        member.stdin.write(f"{json.dumps(job)}\n".encode())
        member.stdin.flush()
        # The client is at work.
        silent.settimeout(SECONDS)
        connection, _ = silent.accept()

        output, _ = member.communicate(timeout=SECONDS)

        connection.close()
    assert (output, member.returncode) == (b"", ABANDONED)
    deadline = time.monotonic() + SECONDS
    while is_anybody_left(member.pid):
        assert time.monotonic() < deadline, f"somebody of {kind.name} outlived its teller"
        threading.Event().wait(PAUSE_SECONDS)
