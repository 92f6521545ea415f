"""A home that runs connectors: the same services as pages use, and what has become of them.

For tests of plugins against their real servers too: create, kill a worker, wait for a fact.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from gateway.kafka.connection import Connection
from tests.cluster import Cluster, running_cluster
from tests.database import FILES, pointed_at, pointed_at_postgres, project_home

# What anything may take on a machine that is busy with other tests.
PATIENCE_S = 60.0
TARGETS = "SAMSA_CONNECT_TARGETS"


class ConnectorsHome:
    """A running home, and Django pointed at its databases."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.folder = cluster.folder
        self.cluster_id = (cluster.folder / "cluster-id").read_text(encoding="ascii").strip()

    @property
    def connection(self) -> Connection:
        return Connection(bootstrap=self.cluster.bootstrap)

    @property
    def admin(self) -> Any:
        """Return who may do everything."""
        from connectors.changes import By  # noqa: PLC0415 - Django is set up by now
        from gateway.access.callers import Caller, CallerKind  # noqa: PLC0415
        from gateway.access.grants import FULL_ADMIN, Rights  # noqa: PLC0415

        caller = Caller(kind=CallerKind.USER, name="admin", rights=Rights((FULL_ADMIN,)))
        return By(caller=caller, address="127.0.0.1")

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Make a connector, as an administrator does."""
        from connectors import services  # noqa: PLC0415 - Django is set up by now

        services.create(self.admin, self.cluster_id, name, config)

    def tasks(self, name: str = "") -> list[Any]:
        """Return rows of tasks, with their connectors: of one, or of all."""
        from connectors.models import Task  # noqa: PLC0415 - as above

        rows = Task.objects.select_related("connector").order_by("connector_id", "number")
        return list(rows.filter(connector__name=name) if name else rows)

    def statuses(self) -> list[Any]:
        """Return what pages and REST tell of all connectors."""
        from connectors import selectors  # noqa: PLC0415 - as above
        from gateway.access.grants import FULL_ADMIN, Rights  # noqa: PLC0415

        return selectors.statuses(self.cluster_id, reader=Rights([FULL_ADMIN]))

    def has_run_since(self, name: str = "") -> Callable[[], bool]:
        """Return whether every task has begun, or ended, a slice since now."""
        now = datetime.now(UTC)

        def has_run() -> bool:
            return all(
                (task.served_at and task.served_at > now)
                or (task.slice_ended_at and task.slice_ended_at > now)
                for task in self.tasks(name)
            )

        return has_run

    def kill_worker_of(self, name: str) -> str:
        """Kill -9 the worker that has the first task of a connector; return its name."""
        from connectors.models import Worker  # noqa: PLC0415 - as above

        worker = Worker.objects.get(name=self.tasks(name)[0].worker)
        os.kill(worker.process_id, signal.SIGKILL)
        return str(worker.name)

    def wait(self, fact: Callable[[], bool], what: str, *, seconds: float = PATIENCE_S) -> float:
        """Wait until something is so; return how long that took."""
        began = time.monotonic()
        try:
            self.cluster.wait(fact, what, seconds=seconds)
        except AssertionError as error:
            shown = [
                f"{task.connector.name}-{task.number} {task.state} at {task.worker}, leased until"
                f" {task.leased_until}, queued {task.queued_at}: {task.trace}"
                for task in self.tasks()
            ]
            raise AssertionError("\n".join([*shown, str(error)])) from None
        return time.monotonic() - began

    def wait_until_running(self, name: str) -> None:
        def is_running() -> bool:
            tasks = self.tasks(name)
            failed = [task.trace for task in tasks if task.state == "FAILED"]
            assert not failed, failed[0]
            return bool(tasks) and all(task.slice_ended_at or task.leased_until for task in tasks)

        self.wait(is_running, f"{name} to run")


@contextmanager
def connectors_home(
    folder: Path,
    *,
    workers: int = 1,
    has_web: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[ConnectorsHome]:
    """Run a home with a broker and workers until the block ends, on SQLite or on PostgreSQL."""
    project_home()
    from django.test.utils import override_settings  # noqa: PLC0415 - Django is set up by now

    from connectors import selectors  # noqa: PLC0415

    started = running_cluster(
        folder,
        has_web=has_web,
        gateway_workers=1,
        connect_workers=workers,
        environment=environment,
    )
    with started as cluster, databases(folder, (environment or {}).get("DATABASE_URL", "")):
        secrets = folder / "secrets"
        told = override_settings(
            SAMSA_HOME=folder, SAMSA_SECRETS=secrets, SAMSA_CONNECT_KEY_FILE=secrets / "connect"
        )
        # This process checks configs in the place of the home's web server.
        targets = {name: text for name, text in (environment or {}).items() if name == TARGETS}
        with told, patch.dict(os.environ, targets):
            selectors.vault.cache_clear()
            yield ConnectorsHome(cluster)
        selectors.vault.cache_clear()


def databases(folder: Path, url: str) -> AbstractContextManager[None]:
    """Point Django at the databases of a home, or at the one that its cluster shares."""
    places: dict[str, dict[str, Any]] = {
        alias: {"NAME": folder / name} for alias, name in FILES.items()
    }
    return pointed_at_postgres(url) if url else pointed_at(places)
