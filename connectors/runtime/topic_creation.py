"""Creates the topics that a source writes to, according to its `topic.creation.*` keys.

Without such keys, a missing topic is created if the configuration of the brokers allows it and the
author of the config has the right. A client that creates topics by itself would ask for no right.
"""

from collections.abc import Mapping
from typing import Final

from connectors.runtime.ports import Level, Ports
from connectors.runtime.sink_places import compiled
from connectors.runtime.task_settings import below, value
from connectors.sdk.errors import ConfigError, ConnectorError, RetriableError
from gateway.kafka.values import CLUSTER_DEFAULT, NewTopic

PREFIX: Final = "topic.creation."
DEFAULT_GROUP: Final = "default"
# The key of the topics that exist, in a task's memory, and how many it holds: those of a large
# database; with more of them, each is asked for again.
KNOWN: Final = "topics that exist"
MAX_KNOWN: Final = 100_000
# Keys of a group that are not configs of the topic.
OWN_KEYS: Final = frozenset({"include", "exclude", "replication.factor", "partitions"})


class TopicCreation:
    """Belongs to one slice, and asks for each topic once; later slices know them."""

    def __init__(self, config: Mapping[str, str], ports: Ports) -> None:
        self._config = config
        self._ports = ports
        self._is_enabled = bool(below(config, f"{PREFIX}{DEFAULT_GROUP}."))
        self._known: set[str] = ports.memory.setdefault(KNOWN, set())

    def require(self, topic: str) -> None:
        """Create a topic if it does not exist; ConnectorError if the author may not."""
        if topic in self._known:
            return
        if topic not in self._ports.wire.topics():
            if not self._is_enabled:
                self._require_creatable(topic)
            if self._ports.wire.create(self.described(topic)):
                self._ports.log.write(Level.INFO, f"created topic {topic}")
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known.add(topic)

    def forget(self) -> None:
        """Ask for each topic again, since one may have been deleted."""
        self._known.clear()

    def _require_creatable(self, topic: str) -> None:
        if refusal := self._ports.creation_refusal(topic):
            raise ConnectorError(refusal)
        if not self._ports.wire.creates_topics():
            raise RetriableError(
                f"topic {topic} does not exist, and brokers create none"
                " (auto.create.topics.enable=false): create it, or set the keys"
                " topic.creation.default.partitions and topic.creation.default.replication.factor"
            )

    def described(self, topic: str) -> NewTopic:
        """Return the topic as described by the first group that includes it."""
        group = next((name for name in self._groups() if self._includes(name, topic)), None)
        own = below(self._config, f"{PREFIX}{group or DEFAULT_GROUP}.")
        fallback = below(self._config, f"{PREFIX}{DEFAULT_GROUP}.")
        return NewTopic(
            name=topic,
            partitions=_number(own, fallback, "partitions"),
            replication_factor=_number(own, fallback, "replication.factor"),
            configs={key: text for key, text in own.items() if key not in OWN_KEYS},
        )

    def _groups(self) -> list[str]:
        groups: list[str] = value(self._config, "topic.creation.groups")
        return [name for name in groups if name != DEFAULT_GROUP]

    def _includes(self, group: str, topic: str) -> bool:
        keys = below(self._config, f"{PREFIX}{group}.")
        return _matches(keys.get("include", ""), topic) and not _matches(
            keys.get("exclude", ""), topic
        )


def _matches(patterns: str, topic: str) -> bool:
    return any(
        compiled(pattern.strip()).fullmatch(topic) is not None
        for pattern in patterns.split(",")
        if pattern.strip()
    )


def _number(own: Mapping[str, str], fallback: Mapping[str, str], key: str) -> int:
    text = own.get(key, fallback.get(key, str(CLUSTER_DEFAULT)))
    try:
        return int(text)
    except ValueError:
        raise ConfigError(
            f"Invalid value {text} for {key} of topic.creation: give a number"
        ) from None
