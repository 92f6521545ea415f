"""Reads orders for brokers, and the hosts of brokers, for pages and agents.

`services.orders` writes them. An order is a row that the agent of the broker's host takes once. The
verbs are a closed table; no agent executes any other verb.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from brokers.controlplane import models

# Longer than a supervisor takes for the longest order; an agent that has not reported a result by
# then has ended itself.
ANSWER_WITHIN_MS: Final = 90_000


class Verb(StrEnum):
    START = "start"
    STOP = "stop"
    RESTART = "restart"
    LOG = "log"  # returns the newest lines; changes nothing


CHANGING: Final = frozenset(Verb) - {Verb.LOG}


class OrderState(StrEnum):
    WAITING = "waiting"
    TAKEN = "taken"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"  # no agent took it in time, and none will


OPEN: Final = frozenset({OrderState.WAITING, OrderState.TAKEN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    number: int
    broker_id: int
    verb: Verb
    cursor: str
    actor: str
    asked_at_ms: int
    deadline_ms: int
    state: OrderState
    taken_at_ms: int
    ended_at_ms: int
    message: str

    @property
    def is_open(self) -> bool:
        return self.state in OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLines:
    """The end of a broker's log. `has_gap`: lines between the cursor and these are left out."""

    lines: tuple[str, ...]
    cursor: str
    has_gap: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a broker runs, the user who stopped it, if one did, and how it ended last."""

    broker_id: int
    epoch: int
    host: str  # of its agent; empty if that is not known any more
    takes_orders: bool
    registered_at_ms: int
    held_by: str
    held_at_ms: int
    ended_how: str = ""  # empty if it did not end without an order
    ended_at_ms: int = 0
    ended_times: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The result of one check by an agent: the orders that wait for it, holds and last ends."""

    waiting: tuple[Order, ...]
    held: Mapping[int, tuple[str, int]]
    ended: Mapping[int, tuple[str, int, int]]


def places(*, cluster_id: str) -> dict[int, Place]:
    """Return where each broker of a cluster is, by its id."""
    agents = {
        agent.agent_id: agent
        for agent in models.Agent.objects.filter(cluster__cluster_id=cluster_id)
    }
    found = {}
    for row in models.Broker.objects.filter(cluster__cluster_id=cluster_id).order_by("broker_id"):
        agent = agents.get(row.agent_id)
        found[row.broker_id] = Place(
            broker_id=row.broker_id,
            epoch=row.epoch,
            host="" if agent is None else agent.host,
            takes_orders=agent is not None and agent.orders_epoch == agent.epoch,
            registered_at_ms=row.registered_at_ms,
            held_by=row.held_by,
            held_at_ms=row.held_at_ms,
            ended_how=row.ended_how,
            ended_at_ms=row.ended_at_ms,
            ended_times=row.ended_times,
        )
    return found


def newest(*, cluster_id: str, now_ms: int) -> dict[int, Order]:
    """Return the newest order that changes something, by broker."""
    rows = models.BrokerOrder.objects.filter(
        cluster__cluster_id=cluster_id, verb__in=sorted(CHANGING)
    ).order_by("pk")
    return {row.broker_id: order_of(row, now_ms) for row in rows.defer("answer")}


def recent(*, cluster_id: str, broker_id: int, limit: int, now_ms: int) -> list[Order]:
    """Return the orders of a broker that change something, newest first."""
    rows = models.BrokerOrder.objects.filter(
        cluster__cluster_id=cluster_id, broker_id=broker_id, verb__in=sorted(CHANGING)
    ).order_by("-pk")
    return [order_of(row, now_ms) for row in rows.defer("answer")[:limit]]


def log_lines(
    *, cluster_id: str, broker_id: int, number: int, now_ms: int
) -> tuple[Order, LogLines | None] | None:
    """Return an order for a log, with its lines once it has them; None: no such order."""
    row = models.BrokerOrder.objects.filter(
        cluster__cluster_id=cluster_id, broker_id=broker_id, pk=number, verb=Verb.LOG
    ).first()
    if row is None:
        return None
    order = order_of(row, now_ms)
    if not row.answer:
        return order, None
    told = json.loads(row.answer)
    lines = LogLines(
        lines=tuple(told["lines"]), cursor=told["cursor"], has_gap=bool(told["has_gap"])
    )
    return order, lines


def look(*, cluster_id: str, agent_id: str, now_ms: int) -> Look:
    """Return the orders, holds and ends of an agent's brokers, the oldest order first."""
    rows = models.BrokerOrder.objects.filter(
        cluster__cluster_id=cluster_id,
        agent_id=agent_id,
        state=OrderState.WAITING,
        deadline_ms__gte=now_ms,
        # An order of a newer release is left to expire: this code does not know its meaning.
        verb__in=sorted(Verb),
    ).order_by("pk")
    brokers = models.Broker.objects.filter(cluster__cluster_id=cluster_id, agent_id=agent_id)
    held = brokers.exclude(held_by="").values_list("broker_id", "held_by", "held_at_ms")
    ended = brokers.exclude(ended_how="").values_list(
        "broker_id", "ended_how", "ended_at_ms", "ended_times"
    )
    return Look(
        waiting=tuple(order_of(row, now_ms) for row in rows.defer("answer")),
        held={broker_id: (by, at_ms) for broker_id, by, at_ms in held},
        ended={broker_id: (how, at_ms, times) for broker_id, how, at_ms, times in ended},
    )


def order_of(row: models.BrokerOrder, now_ms: int) -> Order:
    state, message = OrderState(row.state), row.message
    if state is OrderState.WAITING and now_ms > row.deadline_ms:
        state = OrderState.EXPIRED
        message = "the agent of the broker's host did not start it in time, and will not"
    elif state is OrderState.TAKEN and now_ms > row.taken_at_ms + ANSWER_WITHIN_MS:
        state = OrderState.FAILED
        message = "the agent took it and has not said how it ended: look at the broker's state"
    return Order(
        number=row.pk,
        broker_id=row.broker_id,
        verb=Verb(row.verb),
        cursor=row.cursor,
        actor=row.actor,
        asked_at_ms=row.asked_at_ms,
        deadline_ms=row.deadline_ms,
        state=state,
        taken_at_ms=row.taken_at_ms,
        ended_at_ms=row.ended_at_ms,
        message=message,
    )
