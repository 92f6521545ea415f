"""Parses the keys of a connector's config that the runtime itself uses.

They were validated when the config was written; an invalid one still fails the task.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from connectors.sdk.checks import InvalidValue, parse
from connectors.sdk.configs import Importance, Key, Kind
from connectors.sdk.errors import ConfigError


def _key(name: str, kind: Kind, default: Any) -> Key:
    return Key(name=name, kind=kind, default=default, importance=Importance.MEDIUM, doc="")


# Defaults are texts, as in a config.
KEYS: Final[Mapping[str, Key]] = {
    key.name: key
    for key in (
        _key("errors.tolerance", Kind.STRING, "none"),
        _key("errors.retry.timeout", Kind.LONG, 0),
        _key("errors.retry.delay.max.ms", Kind.LONG, 60_000),
        _key("errors.log.enable", Kind.BOOLEAN, False),
        _key("errors.log.include.messages", Kind.BOOLEAN, False),
        _key("errors.deadletterqueue.topic.name", Kind.STRING, ""),
        _key("errors.deadletterqueue.topic.replication.factor", Kind.SHORT, -1),
        _key("errors.deadletterqueue.context.headers.enable", Kind.BOOLEAN, False),
        _key("topics", Kind.LIST, []),
        _key("topics.regex", Kind.STRING, ""),
        _key("consumer.override.auto.offset.reset", Kind.STRING, "earliest"),
        _key("consumer.override.max.poll.records", Kind.INT, 500),
        _key("topic.creation.groups", Kind.LIST, []),
    )
}
# With a larger batch a slice would not notice a stop for long.
MAX_POLL_RECORDS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How to handle a record that cannot be converted, transformed or written."""

    is_tolerant: bool = False
    # How long to retry a failing step; None: forever.
    retry_s: float | None = 0.0
    max_delay_s: float = 60.0
    is_logged: bool = False
    has_records_logged: bool = False
    dead_letters: str = ""
    dead_replication: int = -1
    has_context: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The topics that a sink reads, and how."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    reset: str = "earliest"
    max_records: int = 500


def errors_of(config: Mapping[str, str]) -> Errors:
    timeout_ms = value(config, "errors.retry.timeout")
    return Errors(
        is_tolerant=value(config, "errors.tolerance").lower() == "all",
        retry_s=None if timeout_ms < 0 else timeout_ms / 1000,
        max_delay_s=max(value(config, "errors.retry.delay.max.ms"), 1) / 1000,
        is_logged=value(config, "errors.log.enable"),
        has_records_logged=value(config, "errors.log.include.messages"),
        dead_letters=value(config, "errors.deadletterqueue.topic.name"),
        dead_replication=value(config, "errors.deadletterqueue.topic.replication.factor"),
        has_context=value(config, "errors.deadletterqueue.context.headers.enable"),
    )


def reading_of(config: Mapping[str, str]) -> Reading:
    most = value(config, "consumer.override.max.poll.records")
    return Reading(
        topics=tuple(value(config, "topics")),
        pattern=value(config, "topics.regex"),
        reset=value(config, "consumer.override.auto.offset.reset").lower(),
        max_records=min(max(1, most), MAX_POLL_RECORDS),
    )


def value(config: Mapping[str, str], name: str) -> Any:
    """Return the parsed value of a framework key, or its default."""
    key = KEYS[name]
    return _parsed(key, config[name]) if name in config else key.default


def below(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the keys with a prefix, without the prefix."""
    return {name[len(prefix) :]: text for name, text in config.items() if name.startswith(prefix)}


def _parsed(key: Key, text: Any) -> Any:
    try:
        return parse(key, text)
    except InvalidValue as error:
        raise ConfigError(str(error)) from None
