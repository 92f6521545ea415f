"""The list of topics, a page of it at a time."""

import base64
from dataclasses import dataclass
from typing import Final

from brokers.controlplane import selectors
from brokers.controlplane.selectors import NameSet, TopicSummary
from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good
from gateway.access.grants import Rights
from gateway.access.operations import Kind, Operation

PAGE_ROWS: Final = 100
# A topic's name is no longer, so no filter needs to be.
MAX_FILTER: Final = 249


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    name: str
    partitions: int
    replication: int
    id: str
    overrides: tuple[Override, ...]
    state: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    frame: Frame
    filter: str = ""
    # False where the user may see some topics only; numbers of the cluster say more than the rows.
    is_whole: bool = True
    rows: tuple[TopicRow, ...] = ()
    total: int = 0
    first: int = 0  # the number of the first row shown, from 1
    last: int = 0
    previous_page: int | None = None
    next_page: int | None = None


def topics(cluster_id: str | None, contains: str, page: int, rights: Rights) -> Reading[Topics]:
    # No name holds a NUL, and PostgreSQL refuses to be asked for one.
    contains = contains.replace("\0", "").strip()[:MAX_FILTER]
    return last_good.read(
        # With the rights, so that nobody is shown what was read for somebody else.
        ("topics", cluster_id, contains, page, rights.grants),
        lambda: _read(cluster_id, contains, page, rights),
        is_empty=lambda data: not data.rows,
    )


def _read(cluster_id: str | None, contains: str, page: int, rights: Rights) -> Topics:
    around = frame(cluster_id, rights)
    if around.shown is None:
        return Topics(frame=around, filter=contains)
    shown = around.shown.cluster_id
    within = visible(rights, shown)
    total = selectors.topic_count(cluster_id=shown, contains=contains, within=within)
    pages = max(1, -(-total // PAGE_ROWS))
    page = min(max(1, page), pages)
    offset = (page - 1) * PAGE_ROWS
    found = selectors.topics(
        cluster_id=shown, contains=contains, within=within, offset=offset, limit=PAGE_ROWS
    )
    return Topics(
        frame=around,
        filter=contains,
        is_whole=within is None,
        rows=tuple(_row(topic) for topic in found),
        total=total,
        first=offset + 1 if found else 0,
        last=offset + len(found),
        previous_page=page - 1 if page > 1 else None,
        next_page=page + 1 if page < pages else None,
    )


def visible(rights: Rights, cluster_id: str) -> NameSet | None:
    """Return the topics that a user may see; None where that is all of them."""
    names = rights.names(Operation.VIEW, cluster=cluster_id, kind=Kind.TOPIC)
    if names.is_all:
        return None
    return NameSet(literals=names.literals, prefixes=names.prefixes)


def _row(topic: TopicSummary) -> TopicRow:
    return TopicRow(
        name=topic.name,
        partitions=topic.partitions,
        replication=topic.replication_factor,
        id=written_id(topic.id),
        overrides=tuple(Override(key=k, value=v) for k, v in sorted(topic.configs.items())),
        state="bad" if topic.leaderless else "ok",
        word=f"{topic.leaderless} without leader" if topic.leaderless else "Led",
    )


def written_id(topic_id: bytes) -> str:
    """Return a topic's id as Kafka's tools write it."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()
