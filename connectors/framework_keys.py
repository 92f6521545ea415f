"""Defines the keys that every connector has besides its own, and refuses some by name.

Groups, widths and order are those of Kafka Connect 4.3, for which forms and tools are made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from connectors.runtime import overrides
from connectors.sdk import checks
from connectors.sdk.configs import (
    REQUIRED,
    Check,
    Importance,
    Key,
    Kind,
    Width,
)

NAME: Final = "name"
CLASS: Final = "connector.class"
TASKS_MAX: Final = "tasks.max"
TRANSFORMS: Final = "transforms"
PREDICATES: Final = "predicates"
TOPICS: Final = "topics"
TOPICS_REGEX: Final = "topics.regex"
DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
EXACTLY_ONCE: Final = "exactly.once.support"
BOUNDARY: Final = "transaction.boundary"
TOPIC_GROUPS: Final = "topic.creation.groups"
KEY_CONVERTER: Final = "key.converter"
VALUE_CONVERTER: Final = "value.converter"
HEADER_CONVERTER: Final = "header.converter"
CONVERTERS: Final = (KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER)
DEFAULT_CONVERTER: Final = "org.apache.kafka.connect.json.JsonConverter"
DEFAULT_HEADER_CONVERTER: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

# A task is a row, a lease and a place in a queue; far more than usual for one connector.
MAX_TASKS: Final = 1000
# Applies to topics and transforms; the longest published chains have a dozen.
MAX_ALIASES: Final = 50
# A number of partitions that one topic can have here.
MAX_PARTITIONS: Final = 100_000

GROUP_COMMON: Final = "Common"
GROUP_ERRORS: Final = "Error Handling"
GROUP_TOPICS: Final = "Topic Creation"
GROUP_EXACTLY_ONCE: Final = "Exactly Once Support"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A key with its order within its group, which Kafka Connect numbers by hand."""

    key: Key
    order: int


def _key(
    name: str,
    kind: Kind,
    default: Any,
    doc: str,
    *,
    place: tuple[str, int, Width],
    display: str,
    importance: Importance = Importance.LOW,
    check: Check | None = None,
) -> Placed:
    group, order, width = place
    key = Key(
        name=name,
        kind=kind,
        default=default,
        importance=importance,
        doc=doc,
        check=check,
        group=group,
        width=width,
        display_name=display,
    )
    return Placed(key=key, order=order)


def unique_aliases(word: str) -> Check:
    """Return a check of a list of names that the user of the config chooses."""

    def check_aliases(value: Any) -> str | None:
        if not isinstance(value, list):
            return None
        if len(value) > MAX_ALIASES:
            return f"{len(value)} names are given, at most {MAX_ALIASES} are allowed"
        if any(not one for one in value):
            return f"The name of a {word} is empty: take the extra comma away"
        return "Duplicate alias provided." if len(set(value)) < len(value) else None

    return check_aliases


def _only_true(value: Any) -> str | None:
    if value is not False:
        return None
    return f"More tasks than {TASKS_MAX} are never started here: leave it out, or raise {TASKS_MAX}"


def _at_most_tasks(value: Any) -> str | None:
    if isinstance(value, int) and value > MAX_TASKS:
        return f"Value must be no more than {MAX_TASKS}"
    return None


def _no_offsets_topic(value: Any) -> str | None:
    if value == "":
        return "String must be non-empty"
    if value is None:
        return None
    return "Offsets are kept in the database of Samsa, and in no topic: leave it out"


COMMON: Final = (
    _key(
        NAME,
        Kind.STRING,
        REQUIRED,
        "The name of this connector, by which it is shown, changed and deleted.",
        place=(GROUP_COMMON, 1, Width.MEDIUM),
        display="Connector name",
        importance=Importance.HIGH,
        check=checks.without_control_characters,
    ),
    _key(
        CLASS,
        Kind.STRING,
        REQUIRED,
        "The connector class: a name of the catalogue, or the name of the Java class that it "
        "replaces.",
        place=(GROUP_COMMON, 2, Width.LONG),
        display="Connector class",
        importance=Importance.HIGH,
    ),
    _key(
        "connector.plugin.version",
        Kind.STRING,
        None,
        "Ignored: there is one version of each connector, the installed one.",
        place=(GROUP_COMMON, 3, Width.MEDIUM),
        display="Connector version",
        importance=Importance.MEDIUM,
    ),
    _key(
        TASKS_MAX,
        Kind.INT,
        1,
        "The maximum number of tasks; a sink uses at most one for each partition.",
        place=(GROUP_COMMON, 4, Width.SHORT),
        display="Tasks max",
        importance=Importance.HIGH,
        check=checks.all_of(checks.in_range(1), _at_most_tasks),
    ),
    _key(
        "tasks.max.enforce",
        Kind.BOOLEAN,
        True,
        "Whether more tasks than tasks.max are refused; here they always are.",
        place=(GROUP_COMMON, 5, Width.SHORT),
        display="Enforce tasks max",
        check=_only_true,
    ),
    _key(
        KEY_CONVERTER,
        Kind.CLASS,
        DEFAULT_CONVERTER,
        "The converter between keys and bytes of records.",
        place=(GROUP_COMMON, 6, Width.SHORT),
        display="Key converter class",
    ),
    _key(
        "key.converter.plugin.version",
        Kind.STRING,
        None,
        "Ignored: there is one version of each converter.",
        place=(GROUP_COMMON, 7, Width.SHORT),
        display="Key converter version",
    ),
    _key(
        VALUE_CONVERTER,
        Kind.CLASS,
        DEFAULT_CONVERTER,
        "The converter between values and bytes of records.",
        place=(GROUP_COMMON, 8, Width.SHORT),
        display="Value converter class",
    ),
    _key(
        "value.converter.plugin.version",
        Kind.STRING,
        None,
        "Ignored: there is one version of each converter.",
        place=(GROUP_COMMON, 9, Width.SHORT),
        display="Value converter version",
    ),
    _key(
        HEADER_CONVERTER,
        Kind.CLASS,
        DEFAULT_HEADER_CONVERTER,
        "The converter between header values and bytes.",
        place=(GROUP_COMMON, 10, Width.SHORT),
        display="Header converter class",
    ),
    _key(
        "header.converter.plugin.version",
        Kind.STRING,
        None,
        "Ignored: there is one version of each converter.",
        place=(GROUP_COMMON, 11, Width.SHORT),
        display="Header converter version",
    ),
    _key(
        TRANSFORMS,
        Kind.LIST,
        (),
        "Names of transforms, in the order in which records go through them.",
        place=("Transforms", 12, Width.LONG),
        display="Transforms",
        check=unique_aliases("transform"),
    ),
    _key(
        PREDICATES,
        Kind.LIST,
        (),
        "Names of predicates, by which transforms choose their records.",
        place=("Predicates", 13, Width.LONG),
        display="Predicates",
        check=unique_aliases("predicate"),
    ),
    _key(
        "config.action.reload",
        Kind.STRING,
        "restart",
        "The reaction to a change of a secret that the config refers to: it is read again with "
        "each slice of a task.",
        place=(GROUP_COMMON, 14, Width.MEDIUM),
        display="Reload Action",
        check=checks.one_of("none", "restart"),
    ),
    _key(
        "errors.retry.timeout",
        Kind.LONG,
        0,
        "The time in milliseconds in which a failed operation is retried; 0: never, -1: without "
        "end.",
        place=(GROUP_ERRORS, 1, Width.MEDIUM),
        display="Retry Timeout for Errors",
        importance=Importance.MEDIUM,
    ),
    _key(
        "errors.retry.delay.max.ms",
        Kind.LONG,
        60_000,
        "The longest wait between two tries, in milliseconds.",
        place=(GROUP_ERRORS, 2, Width.MEDIUM),
        display="Maximum Delay Between Retries for Errors",
        importance=Importance.MEDIUM,
    ),
    _key(
        "errors.tolerance",
        Kind.STRING,
        "none",
        "none: a record that cannot be taken ends its task. all: it is skipped, and goes to the"
        " dead letters of a sink that names a topic for them.",
        place=(GROUP_ERRORS, 3, Width.SHORT),
        display="Error Tolerance",
        importance=Importance.MEDIUM,
        check=checks.one_of("none", "all"),
    ),
    _key(
        "errors.log.enable",
        Kind.BOOLEAN,
        False,
        "Whether the log of the task has a line for each skipped record.",
        place=(GROUP_ERRORS, 4, Width.SHORT),
        display="Log Errors",
        importance=Importance.MEDIUM,
    ),
    _key(
        "errors.log.include.messages",
        Kind.BOOLEAN,
        False,
        "Whether that line names the topic, partition and offset of the record.",
        place=(GROUP_ERRORS, 5, Width.SHORT),
        display="Log Error Details",
        importance=Importance.MEDIUM,
    ),
)

SOURCE: Final = (
    _key(
        TOPIC_GROUPS,
        Kind.LIST,
        (),
        "Names of groups of topics that are created each with configs of their own.",
        place=(GROUP_TOPICS, 1, Width.LONG),
        display="Topic Creation Groups",
        check=unique_aliases("group of topics"),
    ),
    _key(
        EXACTLY_ONCE,
        Kind.STRING,
        "requested",
        "Whether records must be written exactly once; sources write at least once here.",
        place=(GROUP_EXACTLY_ONCE, 2, Width.SHORT),
        display="Exactly once support",
        importance=Importance.MEDIUM,
        check=checks.one_of_ignoring_case("REQUIRED", "REQUESTED"),
    ),
    _key(
        BOUNDARY,
        Kind.STRING,
        "poll",
        "Without effect: connectors use no transactions.",
        place=(GROUP_EXACTLY_ONCE, 3, Width.SHORT),
        display="Transaction Boundary",
        importance=Importance.MEDIUM,
        check=checks.one_of_ignoring_case("INTERVAL", "POLL", "CONNECTOR"),
    ),
    _key(
        "transaction.boundary.interval.ms",
        Kind.LONG,
        None,
        "Without effect: connectors use no transactions.",
        place=(GROUP_EXACTLY_ONCE, 4, Width.SHORT),
        display="Transaction boundary interval",
        check=lambda value: None if value is None else checks.in_range(0)(value),
    ),
    _key(
        "offsets.storage.topic",
        Kind.STRING,
        None,
        "A topic for offsets, which are kept in the database here.",
        place=("offsets.topic", 1, Width.LONG),
        display="Offsets topic",
        check=_no_offsets_topic,
    ),
)

SINK: Final = (
    _key(
        TOPICS,
        Kind.LIST,
        (),
        "The topics to read, separated by commas.",
        place=(GROUP_COMMON, 4, Width.LONG),
        display="Topics",
        importance=Importance.HIGH,
    ),
    _key(
        TOPICS_REGEX,
        Kind.STRING,
        "",
        "A pattern in the place of topics: all topics whose whole name it matches are read.",
        place=(GROUP_COMMON, 4, Width.LONG),
        display="Topics regex",
        importance=Importance.HIGH,
    ),
    _key(
        DEAD_LETTERS,
        Kind.STRING,
        "",
        "The topic for records that could not be taken; empty for none.",
        place=(GROUP_ERRORS, 6, Width.MEDIUM),
        display="Dead Letter Queue Topic Name",
        importance=Importance.MEDIUM,
    ),
    _key(
        "errors.deadletterqueue.topic.replication.factor",
        Kind.SHORT,
        # Kafka Connect has 3, which a cluster of fewer brokers cannot provide.
        -1,
        "The replication factor of that topic if it is created; -1 for the cluster's default.",
        place=(GROUP_ERRORS, 7, Width.MEDIUM),
        display="Dead Letter Queue Topic Replication Factor",
        importance=Importance.MEDIUM,
    ),
    _key(
        "errors.deadletterqueue.context.headers.enable",
        Kind.BOOLEAN,
        False,
        "Whether headers of those records say what went wrong, and where.",
        place=(GROUP_ERRORS, 8, Width.MEDIUM),
        display="Enable Error Context Headers",
        importance=Importance.MEDIUM,
    ),
)

BY_KIND: Final[Mapping[str, tuple[Placed, ...]]] = MappingProxyType(
    {"source": (*COMMON, *SOURCE), "sink": (*COMMON, *SINK)}
)


def _count(name: str, kind: Kind, doc: str, most: int) -> Key:
    def check_count(value: Any) -> str | None:
        if value == -1:
            return None
        if value is None or not 1 <= value <= most:
            return f"Value must be between 1 and {most}, or -1 to use the broker's default"
        return None

    return Key(
        name=name, kind=kind, default=-1, importance=Importance.LOW, doc=doc, check=check_count
    )


# The keys of a group of topics, after `topic.creation.GROUP.`; others there are configs of its
# topics.
OF_TOPIC_GROUP: Final = (
    Key(
        name="include",
        kind=Kind.LIST,
        default=(),
        importance=Importance.LOW,
        doc="Patterns of topics that belong to this group.",
    ),
    Key(
        name="exclude",
        kind=Kind.LIST,
        default=(),
        importance=Importance.LOW,
        doc="Patterns of topics that do not, though they are included.",
    ),
    _count(
        "replication.factor",
        Kind.SHORT,
        "The replication factor of these topics; -1 for the cluster's default.",
        32_767,
    ),
    _count(
        "partitions",
        Kind.INT,
        "The number of partitions of these topics; -1 for the cluster's default.",
        MAX_PARTITIONS,
    ),
)
DEFAULT_GROUP: Final = "default"
TOPIC_CREATION: Final = "topic.creation."

# Client configs that a connector may set, after `producer.override.` and so on. Addresses,
# credentials, classes and files are excluded: they could lead a worker anywhere.
OVERRIDES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        **{prefix: frozenset(allowed) for prefix, allowed in overrides.PREFIXES.items()},
        "admin.override.": frozenset(),
    }
)


def order_of(kind: str) -> Mapping[str, int]:
    return {placed.key.name: placed.order for placed in BY_KIND[kind]}


def topic_group(group: str) -> list[Key]:
    """Return the keys of a group of topics, with their full names."""
    found = []
    for key in OF_TOPIC_GROUP:
        default: Any = [".*"] if (group, key.name) == (DEFAULT_GROUP, "include") else key.default
        name = f"{TOPIC_CREATION}{group}.{key.name}"
        found.append(replace(key, name=name, default=default, group=f"Topic Creation: {group}"))
    return found


def refused_override(name: str) -> str | None:
    """Return why a client config may not be set; None if it may, and for other keys."""
    for prefix, allowed in OVERRIDES.items():
        if name.startswith(prefix) and name.removeprefix(prefix) not in allowed:
            return (
                f"Configuration {name} may not be overridden: {prefix}* takes "
                f"{', '.join(sorted(allowed)) or 'nothing'}"
            )
    return None
