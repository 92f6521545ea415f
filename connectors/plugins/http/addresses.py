"""Builds the URL of a record's request from `${topic}`, `${key}` and the like; pure.

Placeholders are only allowed after the host, so that no record chooses the server, and their
values are quoted, so that no record chooses another path.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.exchanges import MAX_URL_CHARS, Origin, split
from connectors.sdk.records import SinkRecord

PLACEHOLDER: Final = re.compile(r"\$\{([^}]*)\}")
# Replaces a placeholder while the rest is validated.
ANY: Final = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server, and the request target with placeholders."""

    origin: Origin
    target: str

    def of(self, record: SinkRecord) -> str:
        """Return path and query for a record; DataError if it lacks the key."""
        target = PLACEHOLDER.sub(lambda found: _filled(found[1], record), self.target)
        if len(target) > MAX_URL_CHARS:
            raise DataError(f"its URL would have {len(target)} characters, at most {MAX_URL_CHARS}")
        return target

    @property
    def is_of_record(self) -> bool:
        return PLACEHOLDER.search(self.target) is not None


def parse(url: str) -> Address:
    """Parse an address; ConfigError names the problem."""
    unknown = sorted(set(PLACEHOLDER.findall(url)) - _VALUES.keys())
    if unknown:
        known = ", ".join(f"${{{name}}}" for name in _VALUES)
        raise ConfigError(f"a URL has no ${{{unknown[0][:100]}}}; it may have {known}")
    begin = url.find("/", url.find("://") + 3)
    if PLACEHOLDER.search(url if begin < 0 else url[:begin]):
        raise ConfigError("a URL has placeholders in its path and its query only")
    origin, plain = split(PLACEHOLDER.sub(ANY, url))
    # Fragments are not sent.
    return Address(origin=origin, target=plain if begin < 0 else url[begin:].partition("#")[0])


def _key(record: SinkRecord) -> str:
    key = record.key
    if isinstance(key, bytes):
        try:
            key = key.decode()
        except UnicodeDecodeError as error:
            raise DataError("the key is not text, and its URL needs it") from error
    if isinstance(key, bool):
        return "true" if key else "false"
    if not isinstance(key, (str, int)) or key == "":
        kind = "missing" if key in (None, "") else f"a {type(key).__name__}"
        raise DataError(f"the key is {kind}, and its URL needs a text or a number")
    if key in {".", ".."}:
        raise DataError(f"the key {key!r} would lead to another path")
    return str(key)


_VALUES: Final[Mapping[str, Callable[[SinkRecord], Any]]] = {
    "topic": lambda record: record.topic,
    "key": _key,
    "partition": lambda record: record.first_place.partition,
    "offset": lambda record: record.first_place.offset,
}


def _filled(name: str, record: SinkRecord) -> str:
    try:
        return quote(str(_VALUES[name](record)), safe="")
    except UnicodeEncodeError as error:
        raise DataError("the key has half a character") from error
