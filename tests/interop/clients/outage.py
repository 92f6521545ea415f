"""A cluster without its agent and without its database, for as long as a test wants it.

Brokers own their logs and keep the metadata in memory, so produce and fetch must not notice; what
changes metadata has to wait, and must work again afterwards without anybody's help.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.cluster import Cluster
from tests.postgres import PostgresServer

# The agent looks for its database every two seconds; CI has other tests beside it.
BACK_SECONDS = 60

# Starts the database; the agent follows by itself.
End = Callable[[], None]


@contextmanager
def outage(cluster: Cluster, server: PostgresServer) -> Iterator[End]:
    """Stop the database, kill the agent, and hand over what ends it; leave when all is back.

    Fails unless both were away and no broker was restarted for it.
    """
    brokers, started = broker_pids(cluster), server.started_at()
    # In this order, because an agent without a database cannot get ready before its time.
    server.stop()
    agent = cluster.kill("agent")
    try:
        yield lambda: _end(cluster, server, agent)
    finally:
        # A failure in between is no reason for the next test to fail.
        if server.process is None:
            server.start()
    cluster.wait_for_restart("agent", agent, seconds=BACK_SECONDS)
    assert server.started_at() != started, "the database was not restarted"
    assert broker_pids(cluster) == brokers, "a broker was restarted too"


def broker_pids(cluster: Cluster) -> dict[str, int]:
    components = cluster.status()["components"]
    names = [entry["name"] for entry in components if entry["name"].startswith("broker-")]
    return {name: cluster.pid(name) for name in names}


def _end(cluster: Cluster, server: PostgresServer, agent: int) -> None:
    def is_away() -> bool:
        entry = cluster.component("agent")
        return entry["state"] != "healthy" and entry["pid"] != agent

    # The supervisor needs a moment to see that it died.
    cluster.wait(is_away, "the agent to be missed", seconds=BACK_SECONDS)
    server.start()
