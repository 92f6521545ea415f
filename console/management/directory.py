"""Locates the brokers of this home's cluster by its database."""

from pathlib import Path
from typing import Final

from django.db import Error, connections

from brokers.cluster.topic_configs import ROWS
from brokers.controlplane import selectors
from console.monitoring.daemon import Cluster, DirectoryFailed, NoClusterYet

RETENTION: Final = "retention.ms"
POLICY: Final = "cleanup.policy"
FOR_EVER: Final = -1
# Topics that a sentence would name; here only the number matters.
NAMED: Final = 0


class DatabaseDirectory:
    """Reads only changes: an idle cluster costs two short reads."""

    def __init__(self, cluster_id_file: Path) -> None:
        self._cluster_id_file = cluster_id_file
        self._last: tuple[int, Cluster] | None = None

    def read(self) -> Cluster:
        """Return the present cluster. Raises DirectoryFailed if the database does not answer."""
        try:
            return self._read(self._cluster_id_file.read_text(encoding="ascii").strip())
        except FileNotFoundError:
            raise NoClusterYet("the agent of this home has not made its cluster yet") from None
        except (OSError, UnicodeDecodeError) as error:
            raise DirectoryFailed(f"{self._cluster_id_file} cannot be read: {error}") from error
        except Error as error:
            raise DirectoryFailed(f"the database does not answer: {error}") from error
        finally:
            # The next call may run in another thread, so do not keep a connection.
            connections.close_all()

    def _read(self, cluster_id: str) -> Cluster:
        summary = selectors.cluster(cluster_id=cluster_id)
        if summary is None:
            raise DirectoryFailed(f"the database has no cluster {cluster_id!r}")
        if self._last is None or self._last[0] != summary.version:
            self._last = (summary.version, _cluster(cluster_id))
        return self._last[1]


def _cluster(cluster_id: str) -> Cluster:
    return Cluster(
        id=cluster_id,
        brokers=selectors.brokers(cluster_id=cluster_id),
        offline_partitions=selectors.leaderless(cluster_id=cluster_id, named=NAMED).partitions,
        retention_ms=_retention(cluster_id),
        default_retention_ms=int(ROWS[RETENTION].default or 0),
    )


def _retention(cluster_id: str) -> dict[str, int]:
    """Return the retention of topics that set it; compaction alone deletes nothing."""
    retention = selectors.topic_overrides(cluster_id=cluster_id, key=RETENTION)
    policies = selectors.topic_overrides(cluster_id=cluster_id, key=POLICY)
    compacted = [name for name, policy in policies.items() if "delete" not in policy]
    return {
        **{name: int(value) for name, value in retention.items()},
        **dict.fromkeys(compacted, FOR_EVER),
    }
