"""Provides connections, snapshots and transactions of the control plane's database.

Only this module and `feed` handle the differences between SQLite and PostgreSQL.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from django.db import (
    DatabaseError,
    IntegrityError,
    OperationalError,
    connections,
    router,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from brokers.controlplane import models

# The channel for notifications of new versions, on a database that has them.
CHANNEL: Final = "samsa_changes"
# Two writers in conflict (the same new topic, the same proposal by two agents) conflict once; the
# loser then sees what the winner wrote. More attempts than this mean a bug, which must be visible.
MAX_ATTEMPTS: Final = 5
# PostgreSQL's codes of a deadlock and a failed serialization, which are retried.
WORTH_REPEATING: Final = frozenset({"40P01", "40001"})
# PostgreSQL's code of a lock that was not available within lock_timeout.
LOCK_NOT_AVAILABLE: Final = "55P03"
# SQLite's message for the same, which the queue in front of it uses too.
LOCKED: Final = "database is locked"
# The locks that all processes hold, and the byte that a writer of SQLite locks.
KERNEL_LOCKS: Final = Path("/proc/locks")
WRITE_LOCK_BYTE: Final = 120

P = ParamSpec("P")
T = TypeVar("T")


class Overtaken(Exception):
    """Another writer has changed the rows that a decision of this transaction is based on."""


def alias() -> str:
    """Return the name by which Django knows the control plane's database."""
    return router.db_for_write(models.Cluster)


def connection() -> BaseDatabaseWrapper:
    """Return this thread's connection."""
    return connections[alias()]


def is_postgres() -> bool:
    return connection().vendor == "postgresql"


def own_connection(
    *, lock_timeout_s: float, is_urgent: bool = False, of: str = ""
) -> BaseDatabaseWrapper:
    """Return a connection outside of threads and pools, which is opened on its first use.

    It leads to the control plane's database, or to the one of another alias.

    Its statements wait at most this long for a lock; an urgent connection waits for fewer writers.
    """
    made = connections.create_connection(of or alias())
    settings: dict[str, Any] = deepcopy(made.settings_dict)
    options = settings["OPTIONS"]
    if made.vendor == "postgresql":
        # A pool would pass the connection on with its settings.
        options.pop("pool", None)
        timeout = f"-c lock_timeout={int(1000 * lock_timeout_s)}"
        options["options"] = f"{options.get('options', '')} {timeout}".strip()
    else:
        options.update(timeout=lock_timeout_s, is_urgent=is_urgent)
    made.settings_dict = settings
    return made


def file_of(wrapper: BaseDatabaseWrapper) -> tuple[int, int] | None:
    """Return a unique id of the database file; None for a server, OperationalError if missing."""
    if wrapper.vendor == "postgresql":
        return None
    path = Path(wrapper.settings_dict["NAME"])
    try:
        found = path.stat()
    except OSError as error:
        raise OperationalError(f"{path} cannot be opened: {error}") from error
    return found.st_dev, found.st_ino


def use_own_connection(*, lock_timeout_s: float, is_urgent: bool) -> BaseDatabaseWrapper:
    """Make this thread use a separate connection for all queries from now on; return it."""
    made = own_connection(lock_timeout_s=lock_timeout_s, is_urgent=is_urgent)
    connections[alias()] = made
    return made


def is_lock_timeout(error: Exception) -> bool:
    """Tell whether an error means that a lock was held for too long in a healthy database."""
    return _state_of(error) == LOCK_NOT_AVAILABLE or LOCKED in str(error)


def blamed(reason: str, here: BaseDatabaseWrapper) -> str:
    """Return why a lock was not available, with the process that holds it where it is known."""
    holder = _lock_holder(here) if reason == LOCKED else ""
    return f"{reason} by {holder}; if that process hangs, stop it" if holder else reason


def _lock_holder(here: BaseDatabaseWrapper) -> str:
    """Return the process that holds SQLite's write lock, in words; empty if it is not found.

    Writers of this program name themselves in their queue; others, such as a shell or a backup,
    are known to the kernel only.
    """
    if here.vendor == "postgresql":
        return ""
    try:
        # With a write-ahead log, SQLite locks bytes of the index beside the database.
        inode = Path(f"{here.settings_dict['NAME']}-shm").stat().st_ino
        for line in KERNEL_LOCKS.read_text(encoding="ascii").splitlines():
            # number: POSIX ADVISORY WRITE pid device:device:inode first last
            _, *kind, pid, place, first, last = line.replace(" -> ", " ").split()
            is_write_lock = int(first) <= WRITE_LOCK_BYTE and (
                last == "EOF" or int(last) >= WRITE_LOCK_BYTE
            )
            if kind[-1] == "WRITE" and place.endswith(f":{inode}") and is_write_lock:
                return f"process {pid}"
    except (OSError, ValueError):
        # Another system than Linux, or a namespace that hides it.
        return ""
    return ""


def transactional(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function in one transaction; repeat it from its beginning if another writer won."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                with transaction.atomic(using=alias()):
                    return function(*args, **kwargs)
            except (DatabaseError, Overtaken) as error:
                if not _is_worth_repeating(error):
                    raise
        with transaction.atomic(using=alias()):
            return function(*args, **kwargs)

    return run


@contextmanager
def one_moment() -> Iterator[None]:
    """Make all reads within see one snapshot, without blocking writers."""
    here = connection()
    if here.vendor == "postgresql":
        with transaction.atomic(using=alias()), here.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
        return
    # Django would begin a write transaction, which would block writers during a long read.
    with here.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("COMMIT")


def tell_version(version: int) -> None:
    """Notify listeners of a version when this transaction is committed."""
    if is_postgres():
        with connection().cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, str(version)])


def _is_worth_repeating(error: DatabaseError | Overtaken) -> bool:
    return isinstance(error, IntegrityError | Overtaken) or _state_of(error) in WORTH_REPEATING


def _state_of(error: Exception) -> str | None:
    """Return PostgreSQL's code of an error; None on SQLite."""
    return getattr(error.__cause__, "sqlstate", None)
