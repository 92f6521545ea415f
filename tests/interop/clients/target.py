"""The brokers that clients are pointed at: ours, and Apache Kafka's as the judge of the tests.

What all answer is what a test may demand; a difference is a finding about us, or about the test.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.cluster import running_cluster
from tests.extras import requires
from tests.interop.clients.outage import End, outage
from tests.interop.homes import BROKERS, ENVIRONMENT, shared_bootstrap
from tests.oracles.kafka_broker import KafkaBroker
from tests.postgres import postgres_server
from tests.scale import IS_LONG


@contextmanager
def calm() -> Iterator[End]:
    """Be an outage in which nothing happens."""
    yield lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Running brokers."""

    bootstrap: str
    # What befalls them in the middle of a test; the test says when it begins and ends.
    outage: Callable[[], AbstractContextManager[End]] = calm


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A way to have brokers."""

    name: str
    # Takes a folder and the number of brokers.
    start: Callable[[Path, int], AbstractContextManager[Target]]
    needs: tuple[str, ...] = ()

    @property
    def marks(self) -> pytest.MarkDecorator:
        return requires(*self.needs)


@contextmanager
def samsa(folder: Path, brokers: int) -> Iterator[Target]:
    """Start a cluster of ours as it comes, with SQLite."""
    with running_cluster(folder / "home", brokers=brokers, environment=ENVIRONMENT) as cluster:
        yield Target(bootstrap=cluster.bootstrap)


@contextmanager
def shared_samsa(_folder: Path, brokers: int) -> Iterator[Target]:
    """Give out the cluster of ours that all tests of a run share."""
    assert brokers == BROKERS
    yield Target(bootstrap=shared_bootstrap())


@contextmanager
def samsa_on_postgres(folder: Path, brokers: int, *, has_outages: bool) -> Iterator[Target]:
    """Start a cluster of ours whose DATABASE_URL leads to a server of its own."""
    with postgres_server() as server:
        settings = {**ENVIRONMENT, "DATABASE_URL": server.make_database("samsa")}
        with running_cluster(folder / "home", brokers=brokers, environment=settings) as cluster:
            assert not (cluster.folder / "cluster.db").exists()
            trouble = partial(outage, cluster, server) if has_outages else calm
            yield Target(bootstrap=cluster.bootstrap, outage=trouble)


@contextmanager
def kafka(folder: Path, _brokers: int) -> Iterator[Target]:
    """Start one node of Apache Kafka."""
    broker = KafkaBroker(folder)
    with broker.running():
        yield Target(bootstrap=broker.bootstrap)


SAMSA = Kind(name="samsa", start=samsa)
SHARED_SAMSA = Kind(name="samsa", start=shared_samsa)
KAFKA = Kind(name="kafka", start=kafka, needs=("java", "maven-kafka"))
POSTGRES = Kind(
    name="postgres",
    start=partial(samsa_on_postgres, has_outages=False),
    needs=("postgresql",),
)
OUTAGE = Kind(
    name="outage",
    start=partial(samsa_on_postgres, has_outages=True),
    needs=("postgresql",),
)
# What passes with outages would pass without, so those are enough.
ON_POSTGRES = (OUTAGE, POSTGRES) if IS_LONG else (OUTAGE,)
