"""The brokers that clients are pointed at: ours, and Apache Kafka's as the judge of the tests.

What both answer is what a test may demand; a difference is a finding about us, or about the test.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.cluster import running_cluster
from tests.extras import requires
from tests.oracles.kafka_broker import KafkaBroker

# As the judge is set up: a topic that is only asked for is not made.
SETTINGS = {"SAMSA_DEFAULTS": json.dumps({"auto.create.topics.enable": "false"})}

Start = Callable[[Path, int], AbstractContextManager[str]]


@contextmanager
def samsa(folder: Path, brokers: int) -> Iterator[str]:
    """Start a cluster of ours; hand over its addresses."""
    with running_cluster(folder / "home", brokers=brokers, environment=SETTINGS) as cluster:
        yield cluster.bootstrap


@contextmanager
def kafka(folder: Path, _brokers: int) -> Iterator[str]:
    """Start one node of Apache Kafka."""
    broker = KafkaBroker(folder)
    with broker.running():
        yield broker.bootstrap


SAMSA = pytest.param(samsa, id="samsa")
KAFKA = pytest.param(kafka, id="kafka", marks=requires("java", "maven-kafka"))
