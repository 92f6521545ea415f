"""Predicts the consequences of an order for a broker before it is given, from current data.

Asks no broker. Which producers are open is not known here, so rates of the last seconds stand in
for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from brokers.controlplane import selectors
from brokers.controlplane.orders import Verb
from console import quantities
from console.monitoring.selectors import CollectorFailed
from console.monitoring.tables import TopicRow
from console.queries import live
from console.queries.broker import may_manage, verbs_of
from console.queries.brokers import BrokerRow, may_view, rows_of
from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good
from gateway.access.grants import Rights
from gateway.access.operations import Kind, Operation

# A sentence names this many items and counts the others.
NAMED: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """A consequence of the order; `mark` is the CSS class of its sign."""

    mark: str
    word: str
    sentence: str
    names: tuple[str, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPage:
    """`row` is None if there is no such broker or the user may not see it."""

    frame: Frame
    number: int
    verb: Verb
    row: BrokerRow | None = None
    is_whole: bool = True
    can_manage: bool = False
    # Why the order makes no sense now; empty if it does.
    refusal: str = ""
    consequences: tuple[Consequence, ...] = ()
    command: str = ""


def order_page(
    cluster_id: str | None, number: int, verb: Verb, rights: Rights
) -> Reading[OrderPage]:
    return last_good.read(
        # Key by the rights too, so that no user gets what was read for another one.
        ("broker order", cluster_id, number, verb, rights.grants),
        lambda: _read(cluster_id, number, verb, rights),
        is_empty=lambda data: data.row is None,
    )


def _read(cluster_id: str | None, number: int, verb: Verb, rights: Rights) -> OrderPage:
    around = frame(cluster_id, rights)
    if around.shown is None:
        return OrderPage(frame=around, number=number, verb=verb)
    shown = around.shown.cluster_id
    if not may_view(rights, shown):
        return OrderPage(frame=around, number=number, verb=verb, is_whole=False)
    row = next(iter(rows_of(shown, around, only=number)), None)
    if row is None:
        return OrderPage(frame=around, number=number, verb=verb)
    return OrderPage(
        frame=around,
        number=number,
        verb=verb,
        row=row,
        can_manage=may_manage(rights, shown),
        refusal=refusal_of(row, verb),
        consequences=tuple(_consequences(row, verb, shown, rights)),
        command=f"./samsa brokers {verb} {number}",
    )


def refusal_of(row: BrokerRow, verb: Verb) -> str:
    """Return why an order makes no sense, or why no agent would take it."""
    if not row.takes_orders:
        return (
            f"The agent of {row.host or 'its host'} takes no orders, because it is of an earlier "
            "release: update that host, or run the command below there."
        )
    if verb.value in verbs_of(row):
        return ""
    if row.held_by:
        return f"Broker {row.id} is stopped already, by {row.held_by}: start it instead."
    if verb is Verb.START:
        return f"Broker {row.id} runs already."
    return f"Broker {row.id} does not serve: start it instead."


def _consequences(
    row: BrokerRow, verb: Verb, cluster_id: str, rights: Rights
) -> Iterator[Consequence]:
    if verb is Verb.START:
        yield _comes_back(row)
        return
    is_up = row.up_since is not None
    lasts = "until it is started" if verb is Verb.STOP else "for the seconds of the restart"
    led = selectors.led_by(cluster_id=cluster_id, broker_id=row.id)
    topics = rights.names(Operation.VIEW, cluster=cluster_id, kind=Kind.TOPIC)
    alone = {name: single for name, (_led, single) in led.items() if single}
    yield _pauses(alone, topics.among(alone), lasts, is_up=is_up)
    if not is_up:
        return
    if row.connections:
        yield Consequence(
            mark="warn",
            word="Cut",
            sentence=f"{quantities.count(row.connections)} connections are cut; clients come"
            " back by themselves once it serves.",
        )
    yield from _traffic(led, cluster_id, topics.among(led))
    yield from _groups(row.id, cluster_id, rights)
    if verb is Verb.STOP:
        yield Consequence(
            mark="warn",
            word="Stays",
            sentence="It stays stopped, even after a restart of its home or machine, until it is "
            "started here or on its host.",
        )


def _comes_back(row: BrokerRow) -> Consequence:
    return Consequence(
        mark="ok",
        word="Comes back",
        sentence=f"{quantities.count(row.leaders)} partitions that it leads are served again once"
        " it has recovered its logs: at once after a clean stop, longer after a crash.",
    )


def _pauses(alone: dict[str, int], seen: list[str], lasts: str, *, is_up: bool) -> Consequence:
    if not alone:
        return Consequence(
            mark="ok", word="No pause", sentence="No partition has its only replica here."
        )
    have = "pause" if is_up else "stay paused"
    # Name the topics with the most partitions first.
    named = sorted(seen, key=lambda name: (-alone[name], name))[:NAMED]
    return Consequence(
        mark="bad",
        word="Paused",
        sentence=f"{quantities.count(sum(alone.values()))} partitions of "
        f"{quantities.count(len(alone))} topics {have} {lasts}: their only replica is here, so "
        "they cannot be written or read meanwhile.",
        names=tuple(named),
        more=len(alone) - len(named),
    )


def _traffic(
    led: dict[str, tuple[int, int]], cluster_id: str, seen: list[str]
) -> Iterator[Consequence]:
    """Report which topics of this broker were written and read in the last seconds."""
    known = live.of(cluster_id)
    if not known.is_fresh:
        yield Consequence(
            mark="stale",
            word="Not known",
            sentence="Current traffic is unknown: the collector does not respond.",
        )
        return
    rows = known.snapshot.topics()
    told = [rows[name] for name in led if name in rows]
    written = [row for row in told if row.bytes_in_per_s]
    read = [row for row in told if row.bytes_out_per_s]
    visible = frozenset(seen)
    for rows_here, word, what in ((written, "Written", "written"), (read, "Read", "read")):
        if rows_here:
            yield _active(rows_here, visible, word, what)
    if not written and not read:
        yield Consequence(
            mark="ok",
            word="Quiet",
            sentence="Nothing was written to or read from its topics in the last ten seconds.",
        )


def _active(rows: list[TopicRow], visible: frozenset[str], word: str, what: str) -> Consequence:
    def rate(row: TopicRow) -> float:
        found = row.bytes_in_per_s if what == "written" else row.bytes_out_per_s
        return found or 0.0

    named = sorted((row for row in rows if row.name in visible), key=rate, reverse=True)[:NAMED]
    return Consequence(
        mark="warn",
        word=word,
        sentence=f"{quantities.count(len(rows))} of its topics are being {what} at the moment, "
        f"with {quantities.bytes_rate(sum(map(rate, rows)))} in all: these clients wait.",
        names=tuple(row.name for row in named),
        more=len(rows) - len(named),
    )


def _groups(number: int, cluster_id: str, rights: Rights) -> Iterator[Consequence]:
    """Report which groups the broker coordinates."""
    try:
        detail = live.ask("/broker", id=number)
    except CollectorFailed:
        return
    count = detail.get("group_count", 0)
    if not count:
        return
    names = rights.names(Operation.VIEW, cluster=cluster_id, kind=Kind.GROUP)
    named = names.among(detail.get("groups", ()))[:NAMED]
    yield Consequence(
        mark="warn",
        word="Groups",
        sentence=f"{quantities.count(count)} groups have their coordinator here: their members"
        " cannot commit or rebalance meanwhile.",
        names=tuple(named),
        more=count - len(named),
    )
