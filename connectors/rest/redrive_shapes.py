"""Dead letters and runs as JSON, and the parsers of requests, which raise ApiError."""

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from connectors.dead_letters import Causes, CauseShown, Look, Preview, Shown
from connectors.redrive_plans import RedrivePlan
from connectors.redrives import MAX_PICKED, Asked, RunInfo
from connectors.runtime.letters import Destination, Unsent
from gateway.kafka.values import Span
from gateway.rest.codes import ApiError, Code

OF_PLAN: Final = frozenset({"destination", "offsets", "letters", "exception", "stage", "cause"})
MAX_SPANS: Final = 1000
MAX_WORD_CHARS: Final = 500
MAX_OFFSET: Final = 2**63 - 1


def look(found: Look) -> dict[str, Any]:
    return {
        "topic": found.topic,
        "exists": found.is_there,
        "letters": [_letter(one) for one in found.rows],
        "looked": found.looked,
        "total": found.total,
        "older": ",".join(f"{at}:{offset}" for at, offset in sorted(found.older.items())),
    }


def causes(found: Causes) -> dict[str, Any]:
    return {
        "topic": found.topic,
        "exists": found.is_there,
        "causes": [_cause(one) for one in found.rows],
        "others": found.others,
        "counted": found.counted,
        "counted_all": found.is_whole,
        "total": found.total,
    }


def plan(made: RedrivePlan) -> dict[str, Any]:
    return {
        "connector": made.name,
        "from": made.dead_topic,
        "destination": made.destination.value,
        "targets": dict(made.targets),
        "creates_topic": made.makes_topic,
        "letters": made.chosen,
        "bytes": made.chosen_bytes,
        "looked": made.looked,
        "uncounted": made.uncounted,
        "cause": made.cause_text,
        "caution": made.caution,
        "offsets": [
            {"partition": span.partition, "from": span.start, "until": span.end}
            for span in made.choice.spans
        ],
        "unsent": _unsent(made.unsent),
        "groups": [
            {"group": group.name, "lag": group.lag, "members": group.members}
            for group in made.groups
        ],
        "hidden_groups": made.hidden_groups,
    }


def run(one: RunInfo) -> dict[str, Any]:
    return {
        "run": one.id,
        "connector": one.name,
        "destination": one.destination.value,
        "topics": list(one.topics),
        "state": one.state,
        "letters": one.chosen,
        "counted_all": one.is_counted,
        "sent": one.sent,
        "bytes": one.sent_bytes,
        "looked": one.looked,
        "percent": one.percent,
        "unsent": _unsent(one.unsent),
        "reason": one.reason,
        "by": one.actor,
        "began": one.began_at.isoformat(),
        "changed": one.changed_at.isoformat(),
    }


def filter_of(query: Mapping[str, Any]) -> dict[str, str]:
    """Parse the exception class, the stage, and the id of a cause."""
    return {name: _word(query.get(name) or "", name) for name in ("exception", "stage", "cause")}


def before_of(query: Mapping[str, str]) -> dict[int, int]:
    """Parse the offsets before which letters are requested, by partition."""
    before = {}
    for pair in (query.get("before") or "").split(",")[:MAX_SPANS]:
        if pair:
            partition, _, offset = pair.partition(":")
            before[_digits(partition, "before")] = _digits(offset, "before")
    return before


def asked_of(given: Mapping[str, Any]) -> Asked:
    """Parse the selection of letters for a plan."""
    unknown = sorted(given.keys() - OF_PLAN)
    if unknown:
        known = ", ".join(sorted(OF_PLAN))
        _refuse(f"the field {unknown[0][:100]!r} is unknown: a plan has the fields {known}")
    word = given.get("destination", Destination.RETRY.value)
    if word not in {one.value for one in Destination}:
        _refuse(f"destination is {word!r:.100}: give retry or origin")
    picked = frozenset(
        (_number(one, "partition"), _number(one, "offset")) for one in _list(given, "letters")
    )
    if len(picked) > MAX_PICKED:
        _refuse(f'"letters" has {len(picked)} entries; at most {MAX_PICKED} fit: give offsets')
    spans = {}
    for one in _list(given, "offsets"):
        partition = _number(one, "partition")
        if partition in spans:
            _refuse(f'"offsets" has partition {partition} twice: give one range for each')
        spans[partition] = Span(
            partition=partition,
            start=_number(one, "from", missing=0),
            end=_number(one, "until") if one.get("until") is not None else None,
        )
    return Asked(
        destination=Destination(word),
        spans=tuple(spans.values()),
        picked=picked,
        **filter_of(given),
    )


def seal_of(given: Mapping[str, Any]) -> str:
    sealed = given.get("seal")
    if not isinstance(sealed, str):
        _refuse('the field "seal" is missing: make a plan first, and send its seal')
    return sealed


def require_same(made: RedrivePlan, cluster: str, name: str) -> None:
    if (made.cluster, made.name) != (cluster, name):
        _refuse(f"the seal belongs to a plan for connector {made.name}: send it there")


def _cause(one: CauseShown) -> dict[str, Any]:
    return {
        "cause": one.id,
        "stage": one.stage,
        "exception": one.exception,
        "text": one.text,
        "advice": one.advice,
        "letters": one.letters,
        "first": one.first_ms,
        "last": one.last_ms,
        "example": one.example,
        "message": one.message,
    }


def _letter(one: Shown) -> dict[str, Any]:
    return {
        "partition": one.partition,
        "offset": one.offset,
        "timestamp": one.timestamp_ms,
        "topic": one.topic,
        "topic_partition": one.topic_partition,
        "topic_offset": one.topic_offset,
        "connector": one.connector,
        "task": one.task,
        "stage": one.stage,
        "cause": one.cause.id,
        "class": one.class_name,
        "exception": one.exception,
        "message": one.message,
        "stacktrace": one.stack,
        "attempts": one.attempts,
        "key": _preview(one.key),
        "value": _preview(one.value),
        "headers": [{"name": name, "value": value} for name, value in one.headers],
        "unsent": None if one.unsent is None else one.unsent.words,
    }


def _preview(one: Preview) -> dict[str, Any] | None:
    return None if one.size is None else {"text": one.text, "bytes": one.size}


def _unsent(counts: Mapping[Unsent, int]) -> list[dict[str, Any]]:
    return [{"reason": reason.words, "letters": count} for reason, count in counts.items()]


def _list(given: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    listed = given.get(name) or []
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        _refuse(f'"{name}" has to be a list of objects with "partition"')
    if len(listed) > MAX_SPANS:
        _refuse(f'"{name}" has {len(listed)} entries; at most {MAX_SPANS} fit')
    return listed


def _number(one: Mapping[str, Any], name: str, *, missing: int | None = None) -> int:
    number = one.get(name, missing)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_OFFSET:
        _refuse(f'"{name}" is {number!r:.100}: give a whole number from 0 on')
    return number


def _digits(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        _refuse(f"{name} is partitions with offsets, as 0:17,1:5; {text[:100]!r} is not a number")
    return int(text)


def _word(text: object, name: str) -> str:
    if not isinstance(text, str) or len(text) > MAX_WORD_CHARS:
        _refuse(f"{name} has to be a text of at most {MAX_WORD_CHARS} characters")
    return text


def _refuse(message: str) -> NoReturn:
    raise ApiError(Code.BAD_REQUEST, message)
