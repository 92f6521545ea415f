"""The retry topic of a sink: dead letters that are sent again, and their headers.

Pure. A retry topic holds records unchanged, in key, value, headers and time; Samsa's headers name
the first place of each. Only its connector reads it, in addition to its own topics.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from connectors.sdk.errors import DataError
from connectors.sdk.records import RecordPlace
from gateway.kafka.values import Header, Record

# The prefix of Samsa's headers, which the sink removes.
PREFIX: Final = "__samsa.retry."
TOPIC: Final = f"{PREFIX}topic"
PARTITION: Final = f"{PREFIX}partition"
OFFSET: Final = f"{PREFIX}offset"
ATTEMPT: Final = f"{PREFIX}attempt"
# The run that sent the record, and its letter: a resumed run finds what it has sent.
RUN: Final = f"{PREFIX}run"
LETTER: Final = f"{PREFIX}letter"
# Prefix and suffix of the topic name. A dot in the connector's name would make it collide with the
# topic of a connector with an underscore there.
_PLAIN: Final = re.compile(r"[a-zA-Z0-9_-]+")
_HEAD: Final = "connect-"
_TAIL: Final = ".retry"
_ANY: Final = re.compile(r"connect-[a-zA-Z0-9_-]+\.retry(-[0-9a-f]{16})?")
MAX_TOPIC_CHARS: Final = 249
DIGEST_CHARS: Final = 16
# The largest number in a header is an offset.
MAX_DIGITS: Final = 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The first place of a record, and how often it has been sent again.

    Partition and offset are None if the dead letter did not name them.
    """

    topic: str
    partition: int | None = None
    offset: int | None = None
    attempt: int = 1

    @property
    def place(self) -> RecordPlace | None:
        if self.partition is None or self.offset is None:
            return None
        return RecordPlace(topic=self.topic, partition=self.partition, offset=self.offset)


def name_for(connector: str) -> str:
    """Return the name of a connector's retry topic, which is unique."""
    plain = f"{_HEAD}{connector}{_TAIL}"
    if _PLAIN.fullmatch(connector) and len(plain) <= MAX_TOPIC_CHARS:
        return plain
    digest = hashlib.sha256(connector.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]
    left = MAX_TOPIC_CHARS - len(_HEAD) - len(_TAIL) - 1 - DIGEST_CHARS
    legal = re.sub(r"[^a-zA-Z0-9_-]", "_", connector[:left])
    return f"{_HEAD}{legal}{_TAIL}-{digest}"


def is_retry_topic(name: str) -> bool:
    """Return whether a topic name is that of a retry topic."""
    return _ANY.fullmatch(name) is not None


def headers_of(origin: Origin) -> tuple[Header, ...]:
    told = {
        TOPIC: origin.topic,
        PARTITION: origin.partition,
        OFFSET: origin.offset,
        ATTEMPT: origin.attempt,
    }
    return tuple((name, str(value).encode()) for name, value in told.items() if value is not None)


def origin_of(record: Record) -> Origin:
    """Return the first place of a record in a retry topic. Raises DataError without one."""
    found = origin_in(record.headers)
    if found is None:
        raise DataError(
            f"a record of a retry topic names its first topic in the header {TOPIC}, and this one"
            " does not: send dead letters again by the console or ./samsa connectors, and write"
            " nothing else there"
        )
    return found


def origin_in(headers: Iterable[Header]) -> Origin | None:
    """Parse the headers; None if they name no topic."""
    told = {name: value for name, value in headers if name.startswith(PREFIX)}
    topic = (told.get(TOPIC) or b"").decode("utf-8", "replace")
    if not topic:
        return None
    return Origin(
        topic=topic,
        partition=number(told.get(PARTITION)),
        offset=number(told.get(OFFSET)),
        attempt=number(told.get(ATTEMPT)) or 1,
    )


def sending_headers(*, run: str, partition: int, offset: int) -> tuple[Header, ...]:
    return ((RUN, run.encode()), (LETTER, f"{partition}/{offset}".encode()))


def sent_in(headers: Iterable[Header], *, run: str) -> tuple[int, int] | None:
    """Return partition and offset of the letter of a record; None if another run sent it."""
    told = {name: value or b"" for name, value in headers if name in {RUN, LETTER}}
    if told.get(RUN) != run.encode():
        return None
    partition, _, offset = told.get(LETTER, b"").partition(b"/")
    found = number(partition), number(offset)
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def without(headers: Iterable[Header]) -> tuple[Header, ...]:
    """Return the record's own headers."""
    return tuple(header for header in headers if not header[0].startswith(PREFIX))


def number(value: bytes | None) -> int | None:
    """Parse the number in a header; None if it is missing or too large."""
    if value is None or not value.isdigit() or len(value) > MAX_DIGITS:
        return None
    return int(value)
