"""Lists the client settings that a connector's config may override, with librdkafka's names.

Others are refused, since they could reach another cluster, another group, or files of the host.
"""

from collections.abc import Mapping
from typing import Final

from connectors.sdk.errors import ConfigError

# Java's name: librdkafka's, or None if the runtime itself uses it.
CONSUMER: Final[Mapping[str, str | None]] = {
    "auto.offset.reset": None,
    "max.poll.records": None,
    "client.id": "client.id",
    "check.crcs": "check.crcs",
    "fetch.max.bytes": "fetch.max.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "fetch.min.bytes": "fetch.min.bytes",
    "isolation.level": "isolation.level",
    "max.partition.fetch.bytes": "max.partition.fetch.bytes",
}
PRODUCER: Final[Mapping[str, str | None]] = {
    "acks": "acks",
    "batch.size": "batch.size",
    "client.id": "client.id",
    "compression.type": "compression.type",
    "delivery.timeout.ms": "message.timeout.ms",
    "enable.idempotence": "enable.idempotence",
    "linger.ms": "linger.ms",
    "max.in.flight.requests.per.connection": "max.in.flight.requests.per.connection",
    "max.request.size": "message.max.bytes",
}
PREFIXES: Final[Mapping[str, Mapping[str, str | None]]] = {
    "consumer.override.": CONSUMER,
    "producer.override.": PRODUCER,
}


def consumer(overrides: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's properties for keys without their prefix. Raises ConfigError."""
    return _translated("consumer.override.", overrides)


def producer(overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the same for a producer."""
    return _translated("producer.override.", overrides)


def _translated(prefix: str, overrides: Mapping[str, str]) -> dict[str, str]:
    allowed = PREFIXES[prefix]
    found = {}
    for name, text in overrides.items():
        if name not in allowed:
            known = ", ".join(sorted(allowed))
            raise ConfigError(f"{prefix}{name} cannot be overridden; these can: {known}")
        own = allowed[name]
        if own is not None:
            found[own] = text
    return found
