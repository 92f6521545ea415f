"""Finds actions, pages, brokers, topics, groups and connectors for the search box."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from django.db import Error

from brokers.controlplane import selectors
from connectors import selectors as connect
from console import group_names
from console.monitoring.verdicts import WORDS
from console.queries.connect import visible as visible_connectors
from console.queries.frame import Frame, frame
from console.queries.groups import visible as visible_groups
from console.queries.links import link
from console.queries.reading import Reading, State, moment, reason_of
from console.queries.topics import MAX_FILTER, visible
from console.queries.verbs import About, Finders, Hit, actions
from gateway.access.grants import Resource, Rights
from gateway.access.operations import Kind, Operation
from gateway.kafka import shown_names

# As many as fit on a screen.
MAX_TOPICS: Final = 8
MAX_BROKERS: Final = 5
MAX_GROUPS: Final = 8
MAX_CONNECTORS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page that can be opened, and other words for it."""

    title: str
    name: str  # of its URL
    words: str
    operation: Operation | None = None


PAGES: Final = (
    Page(title="Overview", name="overview", words="home health brokers cluster needs attention"),
    Page(title="Brokers", name="brokers", words="hosts disk memory restart stop start logs"),
    Page(title="Topics", name="topics", words="partitions configs"),
    Page(title="Groups", name="groups", words="consumers lag offsets members reset"),
    Page(
        title="Connect", name="connectors", words="connectors sources sinks plugins tasks workers"
    ),
    Page(title="Spark", name="spark", words="sessions batches queries tables sql java jobs extras"),
    Page(title="API", name="api", words="rest http openapi swagger curl programs"),
    Page(
        title="Changes",
        name="changes",
        words="audit history who",
        operation=Operation.VIEW_AUDIT,
    ),
    Page(
        title="Users",
        name="users",
        words="roles rights access sessions",
        operation=Operation.MANAGE_USERS,
    ),
    Page(title="Tokens", name="tokens", words="api programs keys rest access secrets"),
    Page(title="Traffic", name="traffic", words="calls requests rates streams sockets rest tokens"),
    Page(title="Your account", name="account", words="password sessions sign out rights"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    title: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    frame: Frame
    wanted: str = ""
    groups: tuple[Group, ...] = ()


def search(
    cluster_id: str | None, wanted: str, rights: Rights, *, now: Callable[[], float]
) -> Reading[Search]:
    """Search current data, not cached answers: something found earlier may be gone."""
    # No name holds a NUL, and PostgreSQL rejects a query with one.
    wanted = wanted.replace("\0", "").strip()[:MAX_FILTER]
    read_at = moment(now())
    try:
        data = _read(cluster_id, wanted, rights)
    except Error as error:
        return Reading(state=State.FAILED, data=None, read_at=read_at, reason=reason_of(error))
    state = State.LOADED if data.groups else State.EMPTY
    return Reading(state=state, data=data, read_at=read_at)


def _read(cluster_id: str | None, wanted: str, rights: Rights) -> Search:
    around = frame(cluster_id, rights)
    shown = around.shown.cluster_id if around.shown else ""
    pages = Group(title="Pages", hits=tuple(_pages(wanted, shown, rights)))
    finders = _finders(around, rights)
    doing = Group(title="Actions", hits=tuple(actions(wanted, shown, rights, finders)))
    # Without a word, the actions show what can be typed.
    found = [doing, pages] if wanted else [pages, doing]
    # Without a word, everything would match.
    if shown and wanted:
        found.append(Group(title="Brokers", hits=tuple(_brokers(wanted, shown, rights))))
        found.append(Group(title="Topics", hits=tuple(_topics(wanted, shown, rights))))
        found.append(Group(title="Groups", hits=tuple(_groups(wanted, around, rights))))
        found.append(Group(title="Connectors", hits=tuple(_connectors(wanted, shown, rights))))
    return Search(frame=around, wanted=wanted, groups=tuple(g for g in found if g.hits))


def _pages(wanted: str, cluster_id: str, rights: Rights) -> Iterable[Hit]:
    looked_for = wanted.lower()
    for page in PAGES:
        may = page.operation is None or rights.allows_somewhere(page.operation)
        # Match from the beginning of a word: "ord" means orders, not a password.
        is_meant = f" {looked_for}" in f" {page.title} {page.words}".lower()
        if may and is_meant:
            yield Hit(text=page.title, link=link(page.name, cluster_id))


def _brokers(wanted: str, cluster_id: str, rights: Rights) -> list[Hit]:
    if not rights.allows(Operation.VIEW, Resource(kind=Kind.CLUSTER, cluster=cluster_id)):
        return []
    hits = [
        Hit(
            text=f"Broker {broker.id}",
            link=link("broker", cluster_id, broker.id),
            detail=f"{broker.host}:{broker.port}",
        )
        for broker in selectors.brokers(cluster_id=cluster_id)
    ]
    looked_for = wanted.lower()
    return [hit for hit in hits if looked_for in f"{hit.text} {hit.detail}".lower()][:MAX_BROKERS]


def _finders(around: Frame, rights: Rights) -> Finders:
    """Return how to find the names that a verb is about; none without a cluster."""
    if around.shown is None or around.live is None:
        return dict.fromkeys(About, lambda _: ())
    cluster_id, snapshot = around.shown.cluster_id, around.live.snapshot
    groups, connectors = visible_groups(rights, cluster_id), visible_connectors(rights, cluster_id)
    return {
        About.TOPIC: lambda part: _topic_names(part, cluster_id, rights),
        About.GROUP: lambda part: _best(part, groups.among(snapshot.group_names()), MAX_GROUPS),
        About.CONNECTOR: lambda part: _best(
            part, connectors.among(connect.names(cluster_id)), MAX_CONNECTORS
        ),
        About.BROKER: lambda part: [
            number
            for number in (str(each.id) for each in selectors.brokers(cluster_id=cluster_id))
            if not part or number == part
        ],
    }


def _topics(wanted: str, cluster_id: str, rights: Rights) -> Iterable[Hit]:
    names = _topic_names(wanted, cluster_id, rights)
    return (Hit(text=name, link=link("topic", cluster_id, name)) for name in names)


def _topic_names(part: str, cluster_id: str, rights: Rights) -> list[str]:
    return selectors.topic_names(
        cluster_id=cluster_id,
        contains=part,
        within=visible(rights, cluster_id),
        limit=MAX_TOPICS,
    )


def _groups(wanted: str, around: Frame, rights: Rights) -> Iterable[Hit]:
    """Search the groups of the collector: the database has none."""
    assert around.shown is not None, "there is a cluster"
    assert around.live is not None, "a cluster that is shown has its tables"
    cluster_id, snapshot = around.shown.cluster_id, around.live.snapshot
    names = visible_groups(rights, cluster_id).among(snapshot.group_names())
    for name in _best(wanted, names, MAX_GROUPS):
        row = snapshot.group(name)
        if row is not None:
            yield Hit(
                text=shown_names.shown(name),
                link=group_names.link(cluster_id, name),
                detail=WORDS[row.verdict_value],
            )


def _connectors(wanted: str, cluster_id: str, rights: Rights) -> Iterator[Hit]:
    names = visible_connectors(rights, cluster_id).among(connect.names(cluster_id))
    for name in _best(wanted, names, MAX_CONNECTORS):
        yield Hit(text=shown_names.shown(name), link=link("connector", cluster_id, name))


def _best(wanted: str, names: Iterable[str], most: int) -> list[str]:
    """Return an exact match, then names that begin with the word, then names that contain it."""
    looked_for = wanted.casefold()
    folded = ((name.casefold(), name) for name in names)
    found = nsmallest(
        most,
        (
            (short != looked_for, not short.startswith(looked_for), short, name)
            for short, name in folded
            if looked_for in short
        ),
    )
    return [name for *_, name in found]
