"""Replaces what varies from run to run in an answer, and texts that people read. Pure.

Statuses, error codes, keys, names and types stay: programs depend on them.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

# Fields with sentences, or with lists of sentences.
SENTENCES: Final = frozenset(
    {"message", "error", "errors", "reason", "trace", "detail", "next_step", "documentation"}
)
# Fields whose values are times, ids and versions.
VARYING: Final = frozenset(
    {
        *("timestamp", "timestamp_ms", "topic_id", "instance_id", "member_id", "version"),
        *(
            "commit",
            "ms",
            "last_modified",
            "pid",
            "uptime_s",
            "since",
            "started",
            "port",
            "since_ms",
        ),
    }
)
# Fields whose values depend on the moment, even whether they are present.
MOMENTARY: Final = frozenset({"verdict", "lag_ms"})
# A list of many alike is kept as its first few and their number.
MOST: Final = 6
FIRST: Final = 2
WIDTH: Final = 118
PATTERNS: Final = (
    (
        re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"),
        "{time}",
    ),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "{uuid}"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "{date}"),
    (re.compile(r"\b\w{3}, \d\d \w{3} \d{4} [0-9:]{8} GMT"), "{time}"),
    # The time and the size of a file.
    (re.compile(r'etag: "[0-9a-f]+-[0-9a-f]+"'), "etag: {tag}"),
    # Cookies are of one home, since others may share its host.
    (re.compile(r"\b(csrftoken|sessionid)-[A-Za-z0-9_-]+"), r"\1-{home}"),
    (re.compile(r"\bsamsa_[A-Za-z0-9_-]{20,}"), "{token}"),
)


class Masks:
    """The names of this run's addresses, ids and tokens."""

    def __init__(self, names: Mapping[str, str]) -> None:
        # The longest first: an address holds others.
        self._names = sorted(names.items(), key=lambda pair: -len(pair[1]))

    def text(self, text: str) -> str:
        for name, value in self._names:
            text = text.replace(value, "{" + name + "}")
        for pattern, name in PATTERNS:
            text = pattern.sub(name, text)
        return text

    def json(self, value: Any, key: str = "") -> Any:
        """Return a JSON value without what varies; `key` is the field that holds it."""
        if key in MOMENTARY:
            return "{" + key + "}"
        if isinstance(value, dict):
            return {self.text(name): self.json(each, name) for name, each in value.items()}
        if isinstance(value, list):
            value = by_partition(value)
            shown = value if len(value) <= MOST else value[:FIRST]
            rest = [f"… {len(value) - FIRST} more"] * (len(value) > MOST)
            return [self.json(each, key) for each in shown] + rest
        if key in SENTENCES and isinstance(value, str) and value:
            return "…"
        if key in VARYING and value is not None:
            return "{" + key + "}"
        return self.text(value) if isinstance(value, str) else value

    def body(self, body: bytes, content_type: str) -> list[str]:
        """Return the lines of a body."""
        text = body.decode("utf-8", "backslashreplace")
        if not text:
            return []
        if "html" in content_type:
            return ["<html>"]
        values = documents(text) if "json" in content_type else None
        if values is None:
            return [self.text(line) for line in text.splitlines()]
        # The number of progress lines of a stream depends on time.
        kept = [
            each
            for each in values
            if not (isinstance(each, dict) and each.get("type") == "progress")
        ]
        return [line for value in by_partition(kept) for line in written(self.json(value))]


def by_partition(values: list[Any]) -> list[Any]:
    """Return records one partition after the other, since partitions are read in parallel."""
    if not all(
        isinstance(each, dict) and {"partition", "offset"} <= each.keys() for each in values
    ):
        return values
    return sorted(values, key=lambda each: (each.get("topic", ""), each["partition"]))


def documents(text: str) -> list[Any] | None:
    """Return the JSON values that follow each other in a text; None if it is not JSON."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError:
            return None
        found.append(value)
    return found


def written(value: Any, indent: str = "") -> list[str]:
    """Write a value in one line if it fits, else each of its items."""
    line = indent + json.dumps(value, ensure_ascii=False)
    if len(line) <= WIDTH or not isinstance(value, dict | list) or not value:
        return [line]
    lines = [indent + ("{" if isinstance(value, dict) else "[")]
    pairs = value.items() if isinstance(value, dict) else ((None, each) for each in value)
    for name, each in pairs:
        first, *rest = written(each, indent + " ")
        label = "" if name is None else f"{json.dumps(name, ensure_ascii=False)}: "
        lines += [f"{indent} {label}{first[len(indent) + 1 :]}", *rest]
    return [*lines, indent + ("}" if isinstance(value, dict) else "]")]
