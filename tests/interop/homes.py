"""The home that the tests of foreign clients share, and how it is set.

As Apache Kafka is set up where it is the judge: a topic that is only asked for is not made, and a
group waits for nobody. The server's side of the new protocol sees a dead member as soon as clients
do in the classic one.
"""

import json
from typing import Final

from tests.suite.services import shared_home

# Of members in both protocols; Kafka allows no shorter one in the classic protocol.
SESSION_MS: Final = 6000
DEFAULTS: Final = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": "500",
}
ENVIRONMENT: Final = {"SAMSA_DEFAULTS": json.dumps(DEFAULTS)}
# Partitions and coordinators on several brokers, so that clients have to find them.
BROKERS: Final = 3


def shared_bootstrap() -> str:
    """Return the addresses of the brokers that all tests of a run may use beside each other."""
    return shared_home(brokers=BROKERS, environment=ENVIRONMENT).bootstrap
