"""RegexRouter and TimestampRouter change the topic of a record; Filter drops records."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from connectors.runtime.transforms.sides import Apply, key_of
from connectors.runtime.values.date_patterns import Pattern
from connectors.sdk.configs import Definition, Importance, Kind
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.records import Record
from connectors.sdk.regexes import compile_checked, wrong_with

REGEX_KEYS: Final = Definition(
    (
        key_of(
            "regex",
            Kind.STRING,
            "A regular expression that the whole name of the topic has to match; in the language "
            "of RE2, so without look-around and back references.",
            importance=Importance.HIGH,
            check=wrong_with,
        ),
        key_of(
            "replacement",
            Kind.STRING,
            "The replacement of the first match: $1 or ${name} insert its groups, and \\$ for a "
            "dollar.",
            importance=Importance.HIGH,
        ),
    )
)
TIMESTAMP_KEYS: Final = Definition(
    (
        key_of(
            "topic.format",
            Kind.STRING,
            "The new topic: ${topic} inserts the old one, ${timestamp} the timestamp.",
            importance=Importance.HIGH,
            default="${topic}-${timestamp}",
        ),
        key_of(
            "timestamp.format",
            Kind.STRING,
            "The format of the timestamp, in UTC: a pattern of Java's SimpleDateFormat.",
            importance=Importance.HIGH,
            default="yyyyMMdd",
        ),
    )
)
FILTER_KEYS: Final = Definition()

# A function from a match to the text of a group.
_Part = Callable[[Any], str]
_GROUP_NAME: Final = re.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}")


def build_filter(_parsed: Mapping[str, Any]) -> Apply:
    return lambda _record: None


def build_timestamp_router(parsed: Mapping[str, Any]) -> Apply:
    pattern = Pattern(parsed["timestamp.format"])
    topic_format: str = parsed["topic.format"]

    def apply(record: Record) -> Record:
        if record.timestamp_ms is None:
            raise DataError(f"Timestamp missing on record of topic {record.topic}")
        when = pattern.format(record.timestamp_ms)
        topic = topic_format.replace("${topic}", record.topic).replace("${timestamp}", when)
        return replace(record, topic=topic)

    return apply


def build_regex_router(parsed: Mapping[str, Any]) -> Apply:
    pattern = compile_checked(parsed["regex"])
    parts = _replacement(parsed["replacement"], pattern)

    def apply(record: Record) -> Record:
        if pattern.fullmatch(record.topic) is None:
            return record
        # The first match may be shorter than the whole name, as in Java's replaceFirst.
        found = pattern.search(record.topic)
        assert found is not None, "a full match is also a match"
        new = "".join(part if isinstance(part, str) else part(found) for part in parts)
        start, end = found.span()
        return replace(record, topic=record.topic[:start] + new + record.topic[end:])

    return apply


def _replacement(text: str, pattern: Any) -> list[str | _Part]:
    """Return the parts of a replacement, which may name groups of the pattern."""
    parts: list[str | _Part] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            if at + 1 == len(text):
                raise ConfigError(f"replacement {text!r} ends with a backslash: write \\\\ for one")
            parts.append(text[at + 1])
            at += 2
        elif char == "$":
            group, at = _group(text, at + 1, pattern)
            parts.append(_group_text(group))
        else:
            parts.append(char)
            at += 1
    return parts


def _group(text: str, at: int, pattern: Any) -> tuple[int | str, int]:
    """Return the group that a dollar names, and where its name ends."""
    if named := _GROUP_NAME.match(text, at):
        if named[1] not in pattern.groupindex:
            raise ConfigError(f"replacement {text!r} names no group of the regex: {named[1]}")
        return named[1], named.end()
    if at == len(text) or not (text[at].isascii() and text[at].isdigit()):
        raise ConfigError(
            f"replacement {text!r} has a $ with no group behind it: write \\$ for a dollar"
        )
    group = int(text[at])
    if group > pattern.groups:
        raise ConfigError(
            f"replacement {text!r} names group {group}, and the regex has {pattern.groups}"
        )
    at += 1
    # Further digits belong to the number as long as such a group exists.
    while at < len(text) and text[at].isascii() and text[at].isdigit():
        longer = group * 10 + int(text[at])
        if longer > pattern.groups:
            break
        group, at = longer, at + 1
    return group, at


def _group_text(group: int | str) -> _Part:
    return lambda found: found.group(group) or ""
