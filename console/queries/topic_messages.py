"""Reads the page of a topic's messages: the query in its form, and the user's rights.

Reads no record. The stream checks the query; here its length is bounded, since the page repeats it,
and its times become instants, so that the address of the page means the same to every reader.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from brokers.cluster.image import Broker
from console.messages.filter_language import filter_of
from console.messages.question import BadQuestion, window_of
from console.preferences import zone_named
from console.queries.frame import Frame
from console.queries.reading import Reading
from console.queries.topic import Found, Head, head_of, stored_topic
from gateway import moments
from gateway.access.grants import ALLOWED, Decision, Resource, Rights, decide
from gateway.access.operations import Kind, Operation

NEWEST: Final = "newest"
OLDEST: Final = "oldest"
OFFSET: Final = "offset"
TIME: Final = "time"
TAIL: Final = "tail"
AUTO: Final = "auto"
MODES: Final = (
    (NEWEST, "Newest first"),
    (OLDEST, "Oldest first"),
    (OFFSET, "From an offset"),
    (TAIL, "Live tail"),
)
# Modes that read a time range.
RANGED: Final = frozenset({NEWEST, OLDEST})
# Starts of a time range by one click.
PRESETS: Final = (("-15m", "15 min"), ("-1h", "1 h"), ("-1d", "1 day"), ("today", "Today"))
LIMITS: Final = ("50", "100", "200", "500", "1000")
# Records of a file; the last limit is the maximum of the export.
EXPORTS: Final = (("1000", "1,000"), ("10000", "10,000"), ("100000", "100,000"))
FORMS: Final = (
    (AUTO, "Automatic"),
    *((name, name) for name in ("json", "text", "hex", "base64", "msgpack")),
    *((name, name) for name in ("int8", "int16", "int32", "int64", "float32", "float64")),
)
# The filter language in examples; docs/howto/find-records.md describes all of it.
FILTERS: Final = (
    ("refused", "these bytes in the key or the value"),
    ('value contains "card refused"', "these in the value; icontains for any case"),
    ('key = "order-17"', "this key"),
    ("value = null", "tombstones"),
    ('header trace = "ab12"', "this header with this value"),
    ("value.order.id = 9007199254740993", "this number there in the JSON value, to the digit"),
    ('value.items[0].sku = "A-1"', "this in its first item"),
    ("timestamp >= 2026-11-19T10:00:00Z", "not older than this"),
    ("partition = 3 and not (late or lost)", "conditions joined"),
)
# Of a form field: longer than any filter or list of partitions that the stream accepts.
MAX_FIELD: Final = 8_192
# One is enough for a client to discover the others.
BOOTSTRAP_BROKERS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The content of the form. Times are instants; one that cannot be read is as it was typed."""

    mode: str = NEWEST
    partitions: str = ""
    offset: str = ""
    since: str = ""
    until: str = ""
    limit: str = LIMITS[0]
    filter: str = ""
    key: str = AUTO
    value: str = AUTO
    # Why the time range cannot be read; empty if it can.
    problem: str = ""

    @property
    def has_options(self) -> bool:
        """Tell whether one of the form's folded fields is set."""
        return bool(self.partitions) or self.key != AUTO or self.value != AUTO

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """The query of the stream, of an export and of an address."""
        fields = {
            "mode": self.mode,
            "partitions": self.partitions,
            "from": self.offset or self.since,
            "to": self.until,
            "limit": self.limit,
            "filter": self.filter,
            "key": self.key,
            "value": self.value,
        }
        return tuple((field, value) for field, value in fields.items() if value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMessages:
    """`head` is None if no topic has the name, or the user may not see it."""

    frame: Frame
    name: str
    head: Head | None = None
    bootstrap: str = ""
    read: Decision = ALLOWED  # of its records
    may_export: bool = False


def asked_of(fields: Mapping[str, str], *, zone: tzinfo, now: datetime) -> Asked:
    """Return the query of an address; an invalid choice becomes the first one of its list.

    Times without an offset are in the zone that the form showed, and else in that of the page.
    """
    typed = {name: _clean(value) for name, value in fields.items()}
    mode, start, until = typed.get("mode"), typed.get("from", ""), typed.get("to", "")
    if preset := typed.get("last", ""):
        start, until = preset, ""
        mode = mode if mode in RANGED else NEWEST
    # An address of an earlier release: the oldest records from a time on.
    mode = OLDEST if mode == TIME else _chosen(mode, [name for name, _ in MODES])
    zone = zone_named(typed.get("zone", "")) or zone
    forms = [name for name, _ in FORMS]
    asked = Asked(
        mode=mode,
        partitions=typed.get("partitions", "").replace(" ", ""),
        offset=start if mode == OFFSET else "",
        since=start if mode in RANGED else "",
        until=until if mode in RANGED else "",
        limit=_limit(typed.get("limit", "")),
        filter=_absolute_filter(typed.get("filter", ""), zone, now),
        key=_chosen(typed.get("key"), forms),
        value=_chosen(typed.get("value"), forms),
    )
    return _with_instants(asked, zone, now)


def _clean(text: str) -> str:
    return text.replace("\0", "")[:MAX_FIELD].strip()


def _with_instants(asked: Asked, zone: tzinfo, now: datetime) -> Asked:
    try:
        window_of(asked.since, asked.until, zone=zone, now=now)
    except BadQuestion as bad:
        return replace(
            asked, problem=f"{bad.message[0].upper()}{bad.message[1:]}: {bad.next_step}."
        )
    since, until = (
        moments.absolute(text, zone=zone, now=now) if text else ""
        for text in (asked.since, asked.until)
    )
    return replace(asked, since=since, until=until)


def _absolute_filter(text: str, zone: tzinfo, now: datetime) -> str:
    try:
        found = filter_of(text, zone=zone, now=now)
    except BadQuestion:
        # The stream reports it, with the position.
        return text
    return text if found is None else found.absolute


def typed(text: str, asked: Asked, *, zone: tzinfo, now: datetime) -> str:
    """Return an end of the time range as its field shows it: in the zone of the page."""
    return text if asked.problem else moments.in_field(text, zone=zone, now=now)


def is_bound_to_reader(given: Mapping[str, str], asked: Asked) -> bool:
    """Tell whether an address means another moment to another reader, or later."""
    is_typed = "zone" in given or "last" in given
    times = {"from": asked.offset or asked.since, "to": asked.until, "filter": asked.filter}
    return is_typed or any(_clean(given.get(name, "")) != text for name, text in times.items())


def stream_of(page: TopicMessages, asked: Asked) -> tuple[tuple[str, str], ...]:
    """Return the query of the stream and of an export: names of fields with their values."""
    if page.frame.shown is None:
        return ()
    return (("cluster", page.frame.shown.cluster_id), ("topic", page.name), *asked.fields)


def address_of(name: str, cluster_id: str | None, asked: Asked) -> str:
    """Return the address of a question, without what is as it is by default."""
    path = reverse("console:topic-messages", args=[name])
    usual = dict(Asked().fields)
    fields = {field: value for field, value in asked.fields if usual.get(field) != value}
    if cluster_id is not None:
        fields = {"cluster": cluster_id, **fields}
    return f"{path}?{urlencode(fields)}" if fields else path


def topic_messages(cluster_id: str | None, name: str, rights: Rights) -> Reading[TopicMessages]:
    stored = stored_topic(cluster_id, name, rights)
    data = None
    if stored.data is not None:
        data = TopicMessages(frame=stored.data.frame, name=name)
        if stored.data.found is not None:
            data = _with_rights(data, stored.data.found, rights)
    return stored.about(data)


def _with_rights(page: TopicMessages, found: Found, rights: Rights) -> TopicMessages:
    resource = Resource(kind=Kind.TOPIC, cluster=found.cluster_id, name=page.name)
    return replace(
        page,
        head=head_of(found, rights),
        bootstrap=bootstrap_of(found.brokers),
        read=decide(rights, Operation.READ_PAYLOADS, resource),
        may_export=decide(rights, Operation.EXPORT, resource).is_allowed,
    )


def bootstrap_of(brokers: Iterable[Broker]) -> str:
    """Return bootstrap addresses of a cluster; brokers in service come first."""
    known = sorted(brokers, key=lambda broker: broker.is_fenced)
    return ",".join(f"{broker.host}:{broker.port}" for broker in known[:BOOTSTRAP_BROKERS])


def _chosen(given: str | None, choices: list[str]) -> str:
    return given if given in choices else choices[0]


def _limit(given: str) -> str:
    """Return a limit of the list, or any smaller one, as a link to one record has it."""
    if given in LIMITS or (given.isascii() and given.isdecimal() and 1 <= len(given) <= 3):
        return given
    return LIMITS[0]
