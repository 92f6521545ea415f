"""Describes the home, the folder for everything that a run writes, and checks who owns its lock.

Layout: supervisor.lock, data/ (log dirs), logs/, run/ (sockets, settings.json), secrets/ (0700);
the agent adds its databases and its own lock, and a user may add broker.properties.
"""

import errno
import fcntl
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from brokers.supervisor.errors import NotRunning, StartRefused

# The kernel's limit for the path of a unix socket, without the final zero byte.
MAX_SOCKET_PATH_BYTES: Final = 107
CONTROL_SOCKET: Final = "control.sock"
AGENT_SOCKET: Final = "agent.sock"
COLLECTOR_SOCKET: Final = "collector.sock"
VALKEY_SOCKET: Final = "valkey.sock"
# For example `gateway-7.sock`: workers that serve programs, including the web server.
WORKER_SOCKET: Final = "{}.sock"
# Longer than any name below.
SOCKETS: Final = "*.sock"
LONGEST_SOCKET: Final = "gateway-99.sock"


class Home:
    """Paths of one home. Nothing is written before `prepare`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.logs = folder / "logs"
        self.run = folder / "run"
        self.secrets = folder / "secrets"
        self.settings_file = self.run / "settings.json"
        # The agent writes both.
        self.secret_file = self.secrets / "inspection"
        self.metrics_secret_file = self.secrets / "metrics"
        self.password_file = self.secrets / "admin-password"
        self.lock_file = folder / "supervisor.lock"
        # Exists while there are connectors; their processes run while it exists.
        self.connect_mark = folder / "connect.wanted"
        # The same for Spark connectors.
        self.spark_mark = folder / "connect.spark.wanted"
        # The console's request to install an extra, and its progress.
        self.extras_mark = folder / "extras.wanted"
        self.extras_file = self.run / "extras.json"
        # Contains the path of the short folder for sockets if the path of run/ is too long.
        self._short_record = self.run / "sockets"

    def prepare(self) -> None:
        """Create the folders; refuse a home that cannot be written."""
        try:
            # Contains records, password hashes and sessions, so it is closed to other users, unless
            # the folder existed before with another mode.
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.data, self.logs):
                folder.mkdir(exist_ok=True)
            for private in (self.run, self.secrets):
                private.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise self.unwritable(error) from error

    def is_owned(self) -> bool:
        """Tell whether a supervisor holds the lock now."""
        try:
            lock = os.open(self.lock_file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not flocked(lock, fcntl.LOCK_SH)
        finally:
            os.close(lock)

    def owner(self) -> int:
        """The process that owns the home, or owned it last; 0 if none ever did."""
        try:
            return int(self.lock_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return 0

    def log_file(self, component: str) -> Path:
        return self.logs / f"{component}.log"

    def log_dir(self, slot: int) -> Path:
        return self.data / f"broker-{slot}"

    def worker_socket(self, worker: str) -> Path:
        """The socket on which a worker that serves programs answers its home."""
        return self.socket_folder() / WORKER_SOCKET.format(worker)

    def valkey_folder(self) -> Path:
        """The folder for the log of the server that workers share; created with the server."""
        folder = self.data / "valkey"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise self.unwritable(error) from error
        return folder

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        """Write ports and options atomically, since readers may come at any time."""
        temporary = self.settings_file.with_suffix(".tmp")
        try:
            temporary.write_text(f"{json.dumps(settings, indent=2)}\n", encoding="utf-8")
            temporary.replace(self.settings_file)
        except OSError as error:
            raise self.unwritable(error) from error

    # --- sockets -------------------------------------------------------------------------------

    def socket_folder(self) -> Path:
        """Return the folder of sockets; create a private one if the path of run/ is too long."""
        if fits(self.run):
            return self.run
        known = self._short_folder()
        if known is None:
            known = Path(tempfile.mkdtemp(prefix="samsa-", dir=short_place()))
            self._short_record.write_text(str(known), encoding="utf-8")
        return known

    def control_socket(self) -> Path:
        """The socket of a running home."""
        if fits(self.run):
            return self.run / CONTROL_SOCKET
        known = self._short_folder()
        if known is None:
            raise NotRunning(f"{self.folder} is not running")
        return known / CONTROL_SOCKET

    def remove_sockets(self) -> None:
        for socket in self.run.glob(SOCKETS):
            socket.unlink(missing_ok=True)
        known = self._short_folder()
        if known is not None:
            shutil.rmtree(known, ignore_errors=True)
        self._short_record.unlink(missing_ok=True)

    def _short_folder(self) -> Path | None:
        """Return the recorded folder, if it still exists and belongs to this user."""
        with suppress(OSError):
            folder = Path(self._short_record.read_text(encoding="utf-8"))
            found = folder.lstat()
            is_private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
            if is_private and found.st_uid == os.geteuid():
                return folder
        return None

    def unwritable(self, error: OSError) -> StartRefused:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return StartRefused(
                f"the disk of the home {self.folder} is full, and nothing of its reserve is left"
                f" ({error.strerror}: {error.filename}): remove other data from this disk"
            )
        return StartRefused(
            f"the home {self.folder} cannot be written ({error.strerror}: {error.filename}):"
            f" make it writable for this user or give another --home"
        )


def flocked(lock: int, kind: int) -> bool:
    """Lock a file if that is possible without waiting."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def fits(folder: Path) -> bool:
    """Tell whether the paths of all sockets of a home fit into a folder."""
    return len(os.fsencode(folder / LONGEST_SOCKET)) <= MAX_SOCKET_PATH_BYTES


def short_place() -> str:
    """Return the user's runtime folder if there is one, else the machine's temporary folder."""
    own = f"/run/user/{os.geteuid()}"
    return own if os.access(own, os.W_OK) else tempfile.gettempdir()
