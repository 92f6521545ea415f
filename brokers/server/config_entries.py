"""Computes the config entries of a topic or broker, with all sources of each key.

Knows the tables of `cluster` and what the image and the start of this broker set, and nothing of
requests. A value comes from the closest source that has one: the topic, this broker while it runs,
all brokers while they run, the start of this broker, the default. The order of sources and the
rule of which of them are shown are Kafka's, oddities included: a key that has other spellings
(log.retention.ms, .minutes, .hours) shows none of them until its own spelling is set.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from brokers.cluster import broker_configs, topic_configs
from brokers.cluster.config_values import ConfigRow, ConfigType, parse
from brokers.cluster.image import ResourceType
from brokers.server.context import Context

BY_CLUSTER: Final = -1  # of a number of partitions: the default
AUTO_CREATE_TOPICS: Final = "auto.create.topics.enable"
DELETE_TOPICS: Final = "delete.topic.enable"


class Source(IntEnum):
    """Kafka's numbers for the sources of a value."""

    TOPIC = 1
    THIS_BROKER = 2  # while it runs
    ALL_BROKERS = 3  # while they run
    START = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The value of one source, and the source's name for the key."""

    key: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One key. `told` begins with the source that decides; it may be empty."""

    key: str
    value: str | None
    source: Source
    is_read_only: bool
    type: ConfigType | None  # None for an unknown key
    sentence: str
    told: tuple[Told, ...]
    is_sensitive: bool = False


def is_enabled(context: Context, key: str) -> bool:
    """Whether this broker was started with a boolean key that is true."""
    row = broker_configs.ROWS[key]
    text = context.config.defaults.get(key, row.default)
    assert text is not None, f"{key} has a default"
    return parse(row.type, text) is True


def default_partitions(context: Context) -> int:
    """Return the partitions of a topic that is created without a number.

    BY_CLUSTER if the store knows it: a value that is set while brokers run overrides those of their
    start.
    """
    key = broker_configs.NUM_PARTITIONS
    if key in context.image.configs_of(ResourceType.BROKER, ""):
        return BY_CLUSTER
    return int(context.config.defaults.get(key, BY_CLUSTER))


def topic_entries(
    context: Context, configs: Mapping[str, str], keys: Sequence[str] | None = None
) -> Iterator[Entry]:
    """Yield the keys of a topic with `configs` set; all, or those of `keys` that exist."""
    spoken = _Spoken(context)
    values = topic_configs.effective(configs, spoken.broker_defaults)
    for row in topic_configs.ROWS.values():
        if keys is not None and row.key not in keys:
            continue
        if row.is_hidden and row.key not in configs and (keys is None or row.key not in values):
            continue
        spellings = [synonym.key for synonym in row.synonyms]
        told = spoken.of(spellings[0], spellings) if spellings else ()
        if row.key in configs:
            own = Told(key=row.key, value=configs[row.key], source=Source.TOPIC)
            told = (own, *told)
        yield _entry(row, values.get(row.key), told, is_read_only=False)


def broker_entries(context: Context, keys: Sequence[str] | None = None) -> Iterator[Entry]:
    """Yield all keys of this broker, or those of `keys` that exist."""
    spoken = _Spoken(context)
    for row in broker_configs.ROWS.values():
        if keys is None or row.key in keys:
            told = spoken.of(row.key, _SPELLINGS.get(row.key, (row.key,)))
            if row.is_hidden and not told:
                continue
            # The value of another spelling is not this key's.
            value = next((each.value for each in told if each.key == row.key), None)
            yield _entry(row, value, told, is_read_only=not row.is_dynamic)
    image = context.image
    own = image.configs_of(ResourceType.BROKER, str(context.broker_id))
    wide = image.configs_of(ResourceType.BROKER, "")
    for key in dict.fromkeys((*own, *wide)):
        if key not in broker_configs.ROWS and (keys is None or key in keys):
            set_in = (Source.THIS_BROKER, own), (Source.ALL_BROKERS, wide)
            yield _unknown(key, [source for source, configs in set_in if key in configs])


def cluster_entries(context: Context, keys: Sequence[str] | None = None) -> Iterator[Entry]:
    """Yield the configs that are set for all brokers while they run."""
    for key, value in context.image.configs_of(ResourceType.BROKER, "").items():
        if keys is not None and key not in keys:
            continue
        row = broker_configs.ROWS.get(key)
        if row is None:
            yield _unknown(key, [Source.ALL_BROKERS])
        else:
            told = (Told(key=key, value=value, source=Source.ALL_BROKERS),)
            yield _entry(row, value, told, is_read_only=not row.is_dynamic)


def _spellings() -> dict[str, tuple[str, ...]]:
    """Map each broker key with synonyms in other units to all of these keys."""
    found: dict[str, tuple[str, ...]] = {}
    for row in topic_configs.ROWS.values():
        keys = tuple(synonym.key for synonym in row.synonyms)
        found.update((key, keys) for key in keys if len(keys) > 1)
    return found


_SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = _spellings()


def _entry(
    row: ConfigRow, value: str | None, told: tuple[Told, ...], *, is_read_only: bool
) -> Entry:
    return Entry(
        key=row.key,
        value=value,
        source=told[0].source if told else Source.DEFAULT,
        is_read_only=is_read_only,
        type=row.type,
        sentence=row.sentence,
        told=told,
    )


def _unknown(key: str, sources: Sequence[Source]) -> Entry:
    """Return an unknown key without its value, which may be a secret, as Kafka does."""
    return Entry(
        key=key,
        value=None,
        source=sources[0],
        is_read_only=True,
        type=None,
        sentence="",
        told=tuple(Told(key=key, value=None, source=source) for source in sources),
        is_sensitive=True,
    )


class _Spoken:
    """The values of this broker's keys by source, read once for a request."""

    __slots__ = ("_sources", "broker_defaults")

    def __init__(self, context: Context) -> None:
        image = context.image
        cluster = image.configs_of(ResourceType.BROKER, "")
        broker = image.configs_of(ResourceType.BROKER, str(context.broker_id))
        start = {**_identity(context), **context.config.defaults}
        self.broker_defaults = broker_configs.defaults(start, cluster, broker)
        self._sources: tuple[tuple[Source, Mapping[str, str]], ...] = (
            (Source.THIS_BROKER, broker),
            (Source.ALL_BROKERS, cluster),
            (Source.START, start),
            (Source.DEFAULT, _DEFAULTS),
        )

    def of(self, key: str, spellings: Sequence[str]) -> tuple[Told, ...]:
        """Return all values of a key in any spelling, its own spelling first."""
        told = [
            Told(key=spelling, value=said[spelling], source=source)
            for source, said in self._sources
            for spelling in spellings
            if spelling in said
        ]
        own = next((place for place, each in enumerate(told) if each.key == key), len(told))
        return tuple(told[own:])


_DEFAULTS: Final[Mapping[str, str]] = {
    row.key: row.default for row in broker_configs.ROWS.values() if row.default is not None
}


def _identity(context: Context) -> dict[str, str]:
    """Return the values that this broker got, or found out, about itself at its start."""
    config = context.config
    number = str(context.broker_id)
    told = {
        "broker.id": number,
        "node.id": number,
        "log.dir": config.log_dir,
        "log.dirs": config.log_dir,
    }
    broker = context.image.brokers.get(context.broker_id)
    if broker is not None:
        told["advertised.listeners"] = f"PLAINTEXT://{broker.host}:{broker.port}"
        told["listeners"] = f"PLAINTEXT://{config.bind}:{broker.port}"
        if broker.rack is not None:
            told["broker.rack"] = broker.rack
    return told
