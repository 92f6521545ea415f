"""Reads the page of a topic's messages: the query in its form, and the user's rights.

Reads no record. The stream checks the query, which is passed on unchanged; only its length is
bounded here, since the page repeats it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.utils import timezone

from brokers.cluster.image import ResourceType
from brokers.cluster.topic_names import INTERNAL_TOPICS
from brokers.controlplane import selectors
from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good
from gateway.access.grants import ALLOWED, Decision, Resource, Rights, decide
from gateway.access.operations import Kind, Operation

NEWEST: Final = "newest"
OFFSET: Final = "offset"
TIME: Final = "time"
TAIL: Final = "tail"
AUTO: Final = "auto"
MODES: Final = (
    (NEWEST, "Newest first"),
    ("oldest", "Oldest first"),
    (OFFSET, "From an offset"),
    (TIME, "From a time"),
    (TAIL, "Live tail"),
)
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
    """The content of the form, as typed."""

    mode: str = NEWEST
    partitions: str = ""
    offset: str = ""
    time: str = ""
    limit: str = LIMITS[0]
    filter: str = ""
    key: str = AUTO
    value: str = AUTO

    @property
    def has_options(self) -> bool:
        """Tell whether one of the form's folded fields is set."""
        return bool(self.partitions) or self.key != AUTO or self.value != AUTO


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTopic:
    """The data of a topic that a page about records needs."""

    partitions: int
    configs: Mapping[str, str]  # only what was set, without defaults


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMessages:
    """`topic` is None if no topic has the name, or the user may not see it."""

    frame: Frame
    name: str
    topic: KnownTopic | None = None
    asked: Asked = Asked()
    # The query of the stream and of an export: names of fields with their values.
    fields: tuple[tuple[str, str], ...] = ()
    bootstrap: str = ""
    read: Decision = ALLOWED  # of its records
    may_produce: bool = False
    may_export: bool = False

    @property
    def query(self) -> str:
        return urlencode(self.fields)

    @property
    def exported(self) -> tuple[tuple[str, str], ...]:
        """The fields of an export except for its limit, which can be larger for a file."""
        return tuple((name, value) for name, value in self.fields if name != "limit")


def asked_of(fields: Mapping[str, str]) -> Asked:
    """Return the query of an address; an invalid choice becomes the first one of its list."""
    typed = {name: value.replace("\0", "")[:MAX_FIELD] for name, value in fields.items()}
    mode = _chosen(typed.get("mode"), [name for name, _ in MODES])
    start = typed.get("from", "").strip()
    forms = [name for name, _ in FORMS]
    return Asked(
        mode=mode,
        partitions=typed.get("partitions", "").replace(" ", ""),
        offset=start if mode == OFFSET else "",
        time=_with_zone(start) if mode == TIME else "",
        limit=_limit(typed.get("limit", "")),
        filter=typed.get("filter", "").strip(),
        key=_chosen(typed.get("key"), forms),
        value=_chosen(typed.get("value"), forms),
    )


def topic_messages(
    cluster_id: str | None, name: str, asked: Asked, rights: Rights
) -> Reading[TopicMessages]:
    return last_good.read(
        ("topic messages", cluster_id, name, asked, rights.grants),
        lambda: _read(cluster_id, name, asked, rights),
        is_empty=lambda data: data.topic is None,
    )


def _read(cluster_id: str | None, name: str, asked: Asked, rights: Rights) -> TopicMessages:
    around = frame(cluster_id, rights)
    # The same name in another cluster is another topic.
    if around.shown is None or cluster_id not in {None, around.shown.cluster_id}:
        return TopicMessages(frame=around, name=name, asked=asked)
    shown = around.shown.cluster_id
    resource = Resource(kind=Kind.TOPIC, cluster=shown, name=name)
    if not rights.allows(Operation.VIEW, resource):
        return TopicMessages(frame=around, name=name, asked=asked)
    return TopicMessages(
        frame=around,
        name=name,
        topic=topic_named(shown, name),
        asked=asked,
        fields=_fields(shown, name, asked),
        bootstrap=bootstrap_of(shown),
        read=decide(rights, Operation.READ_PAYLOADS, resource),
        # Brokers refuse records of clients for internal topics.
        may_produce=name not in INTERNAL_TOPICS
        and decide(rights, Operation.PRODUCE, resource).is_allowed,
        may_export=decide(rights, Operation.EXPORT, resource).is_allowed,
    )


def topic_named(cluster_id: str, name: str) -> KnownTopic | None:
    if "\0" in name:
        # No name holds a NUL, and PostgreSQL rejects a query with one.
        return None
    found = selectors.topic(cluster_id=cluster_id, name=name)
    if found is None:
        return None
    configs = selectors.configs(cluster_id=cluster_id, resource_type=ResourceType.TOPIC, name=name)
    return KnownTopic(partitions=len(found.partitions), configs=configs)


def bootstrap_of(cluster_id: str) -> str:
    """Return bootstrap addresses of the cluster; brokers in service come first."""
    brokers = sorted(selectors.brokers(cluster_id=cluster_id), key=lambda broker: broker.is_fenced)
    return ",".join(f"{broker.host}:{broker.port}" for broker in brokers[:BOOTSTRAP_BROKERS])


def _fields(cluster_id: str, name: str, asked: Asked) -> tuple[tuple[str, str], ...]:
    fields = {
        "cluster": cluster_id,
        "topic": name,
        "mode": asked.mode,
        "partitions": asked.partitions,
        "from": asked.offset or asked.time,
        "limit": asked.limit,
        "filter": asked.filter,
        "key": asked.key,
        "value": asked.value,
    }
    return tuple((field, value) for field, value in fields.items() if value)


def _chosen(given: str | None, choices: list[str]) -> str:
    return given if given in choices else choices[0]


def _limit(given: str) -> str:
    """Return a limit of the list, or any smaller one, as a link to one record has it."""
    if given in LIMITS or (given.isascii() and given.isdecimal() and 1 <= len(given) <= 3):
        return given
    return LIMITS[0]


def _with_zone(typed: str) -> str:
    """Return a time with its offset, so that a link means the same in every time zone."""
    try:
        moment = datetime.fromisoformat(typed)
    except ValueError:
        # Milliseconds, or an error that the stream reports.
        return typed
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.get_current_timezone())
    return moment.isoformat()
