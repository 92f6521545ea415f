"""Adapts orders for brokers: predicts what follows from one before it is given.

Asks no broker. Which producers are open is not known here, so rates of the last seconds are shown
instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from brokers.controlplane import selectors, services
from brokers.controlplane.orders import Verb
from brokers.protocol.errors import ErrorCode, KafkaError
from console import quantities
from console.monitoring.selectors import CollectorFailed
from console.monitoring.tables import TopicRow
from console.plans import previews
from console.plans.kind import FORBIDDEN, Author, CannotPlan, Kind
from console.plans.previews import Consequence, Fact, Link, Outcome, Preview, Step
from console.queries import live
from console.queries.broker import verbs_of
from console.queries.brokers import BrokerRow, may_view, rows_of
from console.queries.frame import frame
from console.queries.links import link
from console.queries.reading import moment
from gateway.access.grants import Rights
from gateway.access.operations import Kind as ResourceKind
from gateway.access.operations import Operation

# A sentence names this many items and counts the others.
NAMED: Final = 8
NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlan:
    """An order for one incarnation of a broker, and its consequences when it was planned."""

    cluster_id: str
    broker: int
    epoch: int
    verb: Verb
    made_at_ms: int
    address: str
    host: str
    state: str
    # Why the order makes no sense now; empty if it does.
    refusal: str
    consequences: tuple[Consequence, ...]


def plan_of(author: Author, asked: str, number: int, verb: Verb) -> OrderPlan:
    """Return the plan of an order in the cluster that was asked for, or in the shown one.

    Raises CannotPlan.
    """
    around = frame(asked, author.rights)
    cluster_id = around.shown.cluster_id if around.shown is not None else ""
    if around.shown is None and not around.is_hidden:
        raise CannotPlan(
            f"There is no broker {number}",
            "No cluster is known yet: brokers appear here once they have registered.",
            status=NOT_FOUND,
        )
    # Where the cluster is hidden from the user, the frame shows another one.
    is_other = bool(asked) and asked != cluster_id
    if around.shown is None or is_other or not may_view(author.rights, cluster_id):
        reason = author.lacks(Operation.VIEW, asked, ResourceKind.CLUSTER)
        raise CannotPlan("You may not see this broker", reason, status=FORBIDDEN)
    row = next(iter(rows_of(cluster_id, around, only=number)), None)
    if row is None:
        raise CannotPlan(
            f"There is no broker {number} in {around.shown.name}",
            "It has never registered, or it was removed. The list of brokers has all others.",
            status=NOT_FOUND,
        )
    return OrderPlan(
        cluster_id=cluster_id,
        broker=row.id,
        epoch=row.epoch,
        verb=verb,
        made_at_ms=author.now_ms,
        address=row.address,
        host=row.host or "its host",
        state=row.state.word,
        refusal=refusal_of(row, verb),
        consequences=tuple(_consequences(row, verb, cluster_id, author.rights)),
    )


def _preview(author: Author, plan: OrderPlan, _number: int) -> Preview:
    verb, broker = plan.verb.value, f"broker {plan.broker}"
    here = _address(plan)
    return Preview(
        frame=frame(plan.cluster_id, author.rights),
        section="brokers",
        title=f"{verb.capitalize()} {broker}",
        note=plan.address,
        made_at=moment(plan.made_at_ms / 1000),
        crumbs=(
            Link(text="Brokers", address=link("brokers", plan.cluster_id)),
            Link(text=str(plan.broker), address=here),
        ),
        notices=(previews.make_refusal(plan.refusal),) if plan.refusal else (),
        steps=(
            Step(
                facts=(Fact(name="State", value=plan.state),),
                consequences=plan.consequences,
                commands=(f"./samsa brokers {verb} {plan.broker}",),
                of_commands=f"Run it on {plan.host}, in the home of the broker.",
            ),
        ),
        rests_on=(f"{broker} at epoch {plan.epoch}: it has not started again",),
        button=f"{verb.capitalize()} {broker}",
        is_risk=plan.verb is Verb.STOP,
        cancel=here,
    )


def _deny(author: Author, plan: OrderPlan) -> str:
    return author.lacks(Operation.MANAGE_BROKERS, plan.cluster_id, ResourceKind.CLUSTER)


def _apply(author: Author, plan: OrderPlan) -> Outcome:
    try:
        services.ask_order(
            cluster_id=plan.cluster_id,
            broker_id=plan.broker,
            broker_epoch=plan.epoch,
            verb=plan.verb,
            origin=author.origin,
            now_ms=author.now_ms,
        )
    except KafkaError as error:
        is_gone = error.code is ErrorCode.BROKER_NOT_AVAILABLE
        return Outcome(
            title=f"Broker {plan.broker} gets no order to {plan.verb.value}",
            notices=(previews.make_refusal(f"{error.message}."),),
            status=NOT_FOUND if is_gone else previews.CONFLICT,
        )
    # The broker's page shows the progress of the order.
    return Outcome(address=_address(plan))


def _address(plan: OrderPlan) -> str:
    return link("broker", plan.cluster_id, plan.broker)


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
    topics = rights.names(Operation.VIEW, cluster=cluster_id, kind=ResourceKind.TOPIC)
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
    known_rows = [rows[name] for name in led if name in rows]
    written = [row for row in known_rows if row.bytes_in_per_s]
    read = [row for row in known_rows if row.bytes_out_per_s]
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
    names = rights.names(Operation.VIEW, cluster=cluster_id, kind=ResourceKind.GROUP)
    named = names.among(detail.get("groups", ()))[:NAMED]
    yield Consequence(
        mark="warn",
        word="Groups",
        sentence=f"{quantities.count(count)} groups have their coordinator here: their members"
        " cannot commit or rebalance meanwhile.",
        names=tuple(named),
        more=count - len(named),
    )


KIND: Final = Kind(
    name="order",
    subject="broker",
    plan=OrderPlan,
    preview=_preview,
    deny=_deny,
    can_apply=lambda plan: not plan.refusal,
    apply=_apply,
    again=lambda _author, plan: link(f"{plan.verb}-broker", plan.cluster_id, plan.broker),
)
