"""Writes orders for brokers: pages create them, the agent of a host takes and ends them."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from brokers.cluster.origins import Origin, Via
from brokers.controlplane import models
from brokers.controlplane.database import transactional
from brokers.controlplane.orders import (
    ANSWER_WITHIN_MS,
    CHANGING,
    OPEN,
    Order,
    OrderState,
    Verb,
    order_of,
)
from brokers.controlplane.services import audit, refusals
from brokers.controlplane.services.audit import Draft
from brokers.protocol.errors import ErrorCode, KafkaError

# How long an order waits for its agent, which checks once a second: an agent that restarts finds
# it, and no broker stops unexpectedly minutes later.
TAKEN_WITHIN_MS: Final = 60_000
# Rows that are kept of a cluster, for the history on pages: a hundred for each of ten brokers.
KEPT_ORDERS: Final = 1_000
# And of rows with the lines of a log, 48 KiB each: a page reads its answer within seconds.
KEPT_ANSWERS: Final = 20
# Logs that may be requested at the same time in one cluster, by its users.
MAX_OPEN_LOGS: Final = 8


class OrderKind(StrEnum):
    """Orders that change something, as the audit calls them."""

    START = "start broker"
    STOP = "stop broker"
    RESTART = "restart broker"


KINDS: Final[Mapping[Verb, OrderKind]] = {
    Verb.START: OrderKind.START,
    Verb.STOP: OrderKind.STOP,
    Verb.RESTART: OrderKind.RESTART,
}


def ask_order(
    *,
    cluster_id: str,
    broker_id: int,
    broker_epoch: int,
    verb: Verb,
    origin: Origin,
    now_ms: int,
    cursor: str = "",
) -> int:
    """Write an order for a broker, and return its number; KafkaError if it is not possible.

    `broker_epoch` is the one that the user has seen: another incarnation is not stopped.
    """
    try:
        return _ask(
            cluster_id=cluster_id,
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            verb=verb,
            origin=origin,
            now_ms=now_ms,
            cursor=cursor,
        )
    except KafkaError as refusal:
        if verb in CHANGING:
            draft = _draft(verb, broker_id, origin, error=refusal)
            refusals.note_drafts(cluster_id=cluster_id, drafts=[draft], now_ms=now_ms)
        raise


@transactional
def _ask(
    *,
    cluster_id: str,
    broker_id: int,
    broker_epoch: int,
    verb: Verb,
    origin: Origin,
    now_ms: int,
    cursor: str,
) -> int:
    # The last row that any writer locks: of two orders at once, the second sees the first.
    cluster = models.Cluster.objects.select_for_update().get(cluster_id=cluster_id)
    broker = cluster.brokers.filter(broker_id=broker_id).first()
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"cluster {cluster.name} has no broker {broker_id}: it may have been removed",
        )
    _check(cluster, broker, broker_epoch, verb, now_ms)
    made = models.BrokerOrder.objects.create(
        cluster=cluster,
        broker_id=broker_id,
        broker_epoch=broker.epoch,
        agent_id=broker.agent_id,
        verb=verb.value,
        cursor=cursor[: models.CURSOR_CHARS].replace("\0", ""),
        actor=origin.actor[: models.TOPIC_NAME_CHARS],
        asked_at_ms=now_ms,
        deadline_ms=now_ms + TAKEN_WITHIN_MS,
        state=OrderState.WAITING.value,
    )
    if verb in CHANGING:
        draft = _draft(verb, broker_id, origin)
        audit.append(cluster, [draft], version=cluster.version, now_ms=now_ms)
    _prune(cluster)
    return int(made.pk)


def take_orders(
    *, cluster_id: str, agent_id: str, numbers: Sequence[int], now_ms: int
) -> list[Order]:
    """Mark orders as taken, each once, and return those that were still waiting."""
    taken = []
    for number in numbers:
        rows = models.BrokerOrder.objects.filter(
            cluster__cluster_id=cluster_id, agent_id=agent_id, pk=number, deadline_ms__gte=now_ms
        )
        changed = {"state": OrderState.TAKEN.value, "taken_at_ms": now_ms}
        if rows.filter(state=OrderState.WAITING.value).update(**changed):
            taken.append(order_of(rows.defer("answer").get(), now_ms))
    return taken


def end_order(
    *, cluster_id: str, number: int, is_done: bool, message: str, answer: str, now_ms: int
) -> None:
    """Write the result of an order that was taken."""
    models.BrokerOrder.objects.filter(
        cluster__cluster_id=cluster_id, pk=number, state=OrderState.TAKEN.value
    ).update(
        state=(OrderState.DONE if is_done else OrderState.FAILED).value,
        ended_at_ms=now_ms,
        message=message.replace("\0", "")[: models.MESSAGE_CHARS],
        answer=answer.replace("\0", ""),
    )


def give_up_taken(*, cluster_id: str, agent_id: str, now_ms: int) -> int:
    """End the orders that an earlier run of an agent took and did not end; return how many."""
    return models.BrokerOrder.objects.filter(
        cluster__cluster_id=cluster_id, agent_id=agent_id, state=OrderState.TAKEN.value
    ).update(
        state=OrderState.FAILED.value,
        ended_at_ms=now_ms,
        message="the agent was restarted meanwhile: check the broker's state",
    )


def write_holds(
    *, cluster_id: str, agent_id: str, held: Mapping[int, tuple[str, int]], now_ms: int
) -> None:
    """Write the holds of a host's brokers; its other brokers have none."""
    del now_ms  # all services of a store get it
    rows = models.Broker.objects.filter(cluster__cluster_id=cluster_id, agent_id=agent_id)
    rows.exclude(held_by="").exclude(broker_id__in=held).update(held_by="", held_at_ms=0)
    for broker_id, (by, at_ms) in held.items():
        rows.filter(broker_id=broker_id).update(held_by=by, held_at_ms=at_ms)


@transactional
def write_ends(
    *, cluster_id: str, agent_id: str, ended: Mapping[int, tuple[str, int, int]], now_ms: int
) -> None:
    """Write how brokers of a host ended last; what is known of the others stays."""
    del now_ms  # all services of a store get it
    rows = models.Broker.objects.filter(cluster__cluster_id=cluster_id, agent_id=agent_id)
    for broker_id, (how, at_ms, times) in ended.items():
        rows.filter(broker_id=broker_id).update(ended_how=how, ended_at_ms=at_ms, ended_times=times)


def _check(
    cluster: models.Cluster, broker: models.Broker, epoch: int, verb: Verb, now_ms: int
) -> None:
    """Refuse an order that is based on outdated state, or that no agent would take."""
    name = f"broker {broker.broker_id}"
    if verb in CHANGING and broker.epoch != epoch:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{name} has been restarted since the page was shown (epoch {epoch} then, "
            f"{broker.epoch} now): look again, then ask again",
        )
    agent = cluster.agents.filter(agent_id=broker.agent_id).first()
    if agent is None or agent.orders_epoch != agent.epoch:
        host = "its host" if agent is None else agent.host
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"the agent of {host} takes no orders, as those of earlier releases: update that "
            f"host, or run `./samsa brokers {verb} {broker.broker_id}` there",
        )
    open_ones = cluster.orders.filter(state__in=sorted(OPEN)).defer("answer")
    if verb not in CHANGING:
        logs = [order_of(row, now_ms) for row in open_ones.filter(verb=verb.value)]
        if sum(order.is_open for order in logs) >= MAX_OPEN_LOGS:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"{MAX_OPEN_LOGS} logs are being asked for at the moment: ask again in a second",
            )
        return
    for row in open_ones.filter(broker_id=broker.broker_id, verb__in=sorted(CHANGING)):
        if order_of(row, now_ms).is_open:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"{name} has an order to {row.verb} already, by {row.actor}: wait for its end, "
                f"{ANSWER_WITHIN_MS // 1000} s at most",
            )


def _draft(verb: Verb, broker_id: int, origin: Origin, *, error: KafkaError | None = None) -> Draft:
    return Draft(
        origin=origin,
        via=Via.BROWSER if origin.session else Via.HOST,
        kind=KINDS[verb],
        subject="broker",
        name=str(broker_id),
        outcome=audit.ACCEPTED if error is None else error.code.name,
        message="" if error is None else error.message,
        before={},
        after={},
    )


def _prune(cluster: models.Cluster) -> None:
    """Delete the oldest orders, and older lines of logs."""
    numbers = cluster.orders.order_by("-pk").values_list("pk", flat=True)
    if beyond := list(numbers[KEPT_ORDERS : KEPT_ORDERS + 1]):
        cluster.orders.filter(pk__lte=beyond[0]).delete()
    answers = numbers.exclude(answer="")
    if beyond := list(answers[KEPT_ANSWERS : KEPT_ANSWERS + 1]):
        cluster.orders.filter(pk__lte=beyond[0]).exclude(answer="").update(answer="")
