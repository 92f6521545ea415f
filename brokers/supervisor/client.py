"""Sends commands to the supervisor of a home, for the command line and tests.

Does not use asyncio, whose import would take the command line longer than all its work.
"""

import json
import socket
from collections.abc import Mapping
from typing import Any, Final

from brokers.supervisor.errors import NotRunning
from brokers.supervisor.home import Home

# A hundred components, each with its last lines.
MAX_ANSWER_BYTES: Final = 2**20
# A supervisor answers from memory; only the probe of its web server may take longer.
ASK_SECONDS: Final = 6.0


def ask(
    home: Home, command: str, *, seconds: float = ASK_SECONDS, **arguments: str | int
) -> Mapping[str, Any]:
    """Send one command to the supervisor of a home and return its answer."""
    if not home.is_owned():
        raise NotRunning(f"{home.folder} is not running")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            connection.connect(str(home.control_socket()))
            request = json.dumps({"command": command, **arguments})
            connection.sendall(f"{request}\n".encode())
            answer = read_line(connection)
    except OSError as error:
        raise NotRunning(
            f"the supervisor of {home.folder} (process {home.owner()}) does not answer: {error}"
        ) from error
    return dict(json.loads(answer))


def read_line(connection: socket.socket) -> bytes:
    answer = b""
    while not answer.endswith(b"\n"):
        block = connection.recv(65_536)
        if not block or len(answer) > MAX_ANSWER_BYTES:
            raise ConnectionError("it hung up in the middle of its answer")
        answer += block
    return answer
