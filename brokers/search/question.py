"""Parses a search request of the HTTP port, and defines the job that the broker makes of it.

Pure. All input is compared with a named limit before it is used.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from brokers.search.predicate import condition_of

# Of a question: a predicate of that size has hundreds of times what people write.
MAX_QUESTION_BYTES: Final = 256 * 1024
# Hits of one search: for a page, and the most for an export.
DEFAULT_HITS: Final = 100
MAX_HITS: Final = 10_000
# Bytes of log files that one search reads by default, 20 s at the usual pace, and at most.
DEFAULT_SCAN_BYTES: Final = 1024**3
MAX_SCAN_BYTES: Final = 1024**4
# Of a key, a value or a header in a hit; the rest is cut off, and the hit says so.
DEFAULT_SHOWN_BYTES: Final = 64 * 1024
MAX_SHOWN_BYTES: Final = 1024 * 1024
# Aborted transactions that a reader of committed data skips; none are made here yet.
MAX_ABORTED: Final = 10_000
_MAX_INT32: Final = 2**31 - 1
_MAX_INT64: Final = 2**63 - 1
_FIELDS: Final = (
    "topic",
    "partition",
    "from",
    "to",
    "where",
    "isolation",
    "max_hits",
    "max_bytes",
    "max_shown_bytes",
)
UNCOMMITTED: Final = "read_uncommitted"
COMMITTED: Final = "read_committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One end of the range: an offset, or the first record that is not older than a time.

    Neither: the start of the log, or the end of the readable records.
    """

    offset: int | None = None
    time: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A validated request. `where` is a valid predicate."""

    topic: str
    partition: int
    first: Bound
    last: Bound  # exclusive
    where: Any
    is_committed: bool
    max_hits: int
    max_bytes: int
    max_shown_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The process's input. Transactions are producer id, first and last offset."""

    folder: str
    start: int
    end: int
    where: Any
    max_hits: int
    max_bytes: int
    max_shown_bytes: int
    max_decompressed_bytes: int
    bytes_per_second: int
    seconds: float
    aborted: Sequence[tuple[int, int, int]] = ()


def question_of(body: bytes) -> Question:
    """Parse a question; ValueError has the fault of an invalid one."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the question is not JSON: {error}") from None
    if not isinstance(told, dict):
        raise ValueError("the question is a JSON object")  # noqa: TRY004 - of who asks
    unknown = [name for name in told if name not in _FIELDS]
    if unknown:
        raise ValueError(f"{unknown[0][:100]!r} is not a field of a question: {', '.join(_FIELDS)}")
    topic = told.get("topic")
    if not isinstance(topic, str) or not topic:
        raise ValueError(f"'topic' is {str(topic)[:100]!r}; name the topic to search")
    isolation = told.get("isolation", UNCOMMITTED)
    if isolation not in (UNCOMMITTED, COMMITTED):
        raise ValueError(
            f"'isolation' is {str(isolation)[:100]!r}; it is {UNCOMMITTED} or {COMMITTED}"
        )
    where = told.get("where")
    condition_of(where)
    return Question(
        topic=topic,
        partition=_number(told, "partition", None, 0, _MAX_INT32),
        first=_bound(told, "from"),
        last=_bound(told, "to"),
        where=where,
        is_committed=isolation == COMMITTED,
        max_hits=_number(told, "max_hits", DEFAULT_HITS, 1, MAX_HITS),
        max_bytes=_number(told, "max_bytes", DEFAULT_SCAN_BYTES, 1, MAX_SCAN_BYTES),
        max_shown_bytes=_number(told, "max_shown_bytes", DEFAULT_SHOWN_BYTES, 0, MAX_SHOWN_BYTES),
    )


def encode_job(job: Job) -> bytes:
    """Return the process's input."""
    return json.dumps(asdict(job)).encode()


def decode_job(data: bytes) -> Job:
    """Parse a job, written by a broker of the same release."""
    return Job(**json.loads(data))


def _bound(told: dict[str, Any], name: str) -> Bound:
    bound = told.get(name)
    if bound is None or bound == {"from": "start", "to": "end"}[name]:
        return Bound()
    if isinstance(bound, dict) and len(bound) == 1:
        if "offset" in bound:
            return Bound(offset=_number(bound, "offset", None, 0, _MAX_INT64))
        if "time" in bound:
            return Bound(time=_number(bound, "time", None, 0, _MAX_INT64))
    raise ValueError(
        f"{name!r} is {str(bound)[:100]!r}; write {{'offset': 12}} or {{'time': milliseconds}}"
    )


def _number(told: dict[str, Any], name: str, default: int | None, least: int, most: int) -> int:
    value = told.get(name, default)
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name!r} is {str(value)[:100]!r}; it is a number of {least} to {most}")
    return value
