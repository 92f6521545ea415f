"""Reads the page that writes one record: the topic, and the initial content of the form."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from brokers.cluster.image import ResourceType
from brokers.cluster.topic_names import KEPT_INSIDE
from brokers.controlplane import selectors
from console import producing
from console.forms.records import RecordForm, again
from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good
from console.queries.topic_messages import bootstrap_of
from gateway.access.callers import Caller
from gateway.access.grants import ALLOWED, Decision, Resource, Rights, decide
from gateway.access.operations import Kind, Operation
from gateway.access.record_reader import RecordReader
from gateway.access.turns import TooBusy
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.readers.admission import admit
from gateway.kafka.values import Record

# A partition and an offset, as rows of the messages page identify a record.
PLACE: Final = re.compile(r"([0-9]{1,9}):([0-9]{1,19})", re.ASCII)
# The largest text that is practical in a form field.
MAX_TYPED: Final = 256 * 1024


class NotAdmitted(Exception):
    """The user may not read the records of the topic; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTopic:
    partitions: int
    configs: Mapping[str, str]  # only what was set, without defaults


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducePage:
    """`topic` is None if the cluster has no topic of the name."""

    frame: Frame
    name: str
    topic: KnownTopic | None = None
    bootstrap: str = ""
    read: Decision = ALLOWED

    @property
    def keeps(self) -> str:
        """What brokers store in the topic, if it is internal; empty if clients may write to it."""
        return KEPT_INSIDE.get(self.name, "")

    @property
    def max_bytes(self) -> int | None:
        """The batch limit of the topic; None if it inherits the brokers' limit."""
        told = None if self.topic is None else self.topic.configs.get("max.message.bytes")
        return int(told) if told is not None and told.isdecimal() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The initial form, and why it is not the requested one."""

    form: RecordForm = field(default_factory=RecordForm)
    problem: str = ""


def produce_page(cluster_id: str | None, name: str, rights: Rights) -> Reading[ProducePage]:
    return last_good.read(
        ("produce", cluster_id, name, rights.grants),
        lambda: _read(cluster_id, name, rights),
        is_empty=lambda data: data.topic is None,
    )


def _read(cluster_id: str | None, name: str, rights: Rights) -> ProducePage:
    around = frame(cluster_id, rights)
    # The same name in another cluster is another topic.
    if around.shown is None or cluster_id not in {None, around.shown.cluster_id}:
        return ProducePage(frame=around, name=name)
    shown = around.shown.cluster_id
    return ProducePage(
        frame=around,
        name=name,
        topic=_topic_named(shown, name),
        bootstrap=bootstrap_of(selectors.brokers(cluster_id=shown)),
        read=decide(
            rights,
            Operation.READ_PAYLOADS,
            Resource(kind=Kind.TOPIC, cluster=shown, name=name),
        ),
    )


def _topic_named(cluster_id: str, name: str) -> KnownTopic | None:
    if "\0" in name:
        # No name holds a NUL, and PostgreSQL rejects a query with one.
        return None
    found = selectors.topic(cluster_id=cluster_id, name=name)
    if found is None:
        return None
    configs = selectors.configs(cluster_id=cluster_id, resource_type=ResourceType.TOPIC, name=name)
    return KnownTopic(partitions=len(found.partitions), configs=configs)


def beginning(page: ProducePage, place: str, caller: Caller) -> Beginning:
    """Return a form filled with the record of a place; an empty one without a place."""
    if not place:
        return Beginning()
    found = PLACE.fullmatch(place)
    if found is None:
        return Beginning(problem=f"{place[:60]!r} names no record: open one, and choose it there.")
    assert page.frame.shown is not None, "a page without a cluster has no form"
    cluster_id = page.frame.shown.cluster_id
    reader = RecordReader(caller=caller, cluster_id=cluster_id, error=NotAdmitted)
    try:
        admission = admit(reader, [page.name])
    except NotAdmitted as refusal:
        return Beginning(problem=str(refusal))
    partition, offset = int(found[1]), int(found[2])
    where = f"Offset {offset} of partition {partition}"
    try:
        record = producing.record_at(admission, page.bootstrap, page.name, partition, offset)
    except TooBusy as busy:
        return Beginning(problem=f"{where} was not read: {busy}. Try again.")
    except KafkaFailure as failure:
        return Beginning(problem=f"{where} could not be read: {failure}. {failure.next_step}")
    if record is None:
        return Beginning(
            problem=f"{where} no longer holds a record, or its broker did not answer within "
            f"{producing.READ_S:g} s: choose another one, or try again."
        )
    if reason := _untypable(record):
        return Beginning(problem=f"{where} {reason}")
    return Beginning(form=again(record))


def _untypable(record: Record) -> str:
    """Return why a form would change the record; empty if it would not."""
    if record.has_unread_headers or any(not name.isprintable() for name, _ in record.headers):
        return (
            "has a header with a name that no form can hold, so the copy would lose it: write the"
            " record with a program that keeps bytes as they are."
        )
    parts = (record.key, record.value, *(data for _, data in record.headers))
    size = max(len(part or b"") for part in parts)
    if size > MAX_TYPED:
        return (
            f"has {size:,} bytes, and a form holds up to {MAX_TYPED:,}: copy it as a command"
            " instead."
        )
    return ""
