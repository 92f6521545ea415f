"""Reads the page of one broker: its state, and tabs for load, clients, configs, log and changes."""

import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from brokers.controlplane import audit, orders, selectors
from brokers.controlplane.audit import Entry, Filter
from brokers.controlplane.orders import Order, OrderState, Verb
from console.monitoring.selectors import CollectorFailed
from console.queries import live
from console.queries.broker_log import LogPart, log_part
from console.queries.broker_settings import Settings, settings_of
from console.queries.broker_states import person
from console.queries.broker_traffic import Traffic, traffic_of
from console.queries.brokers import BrokerRow, ended_words, may_view, rows_of
from console.queries.charts import Chart
from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good, moment
from gateway.access.grants import CONSOLE, Resource, Rights
from gateway.access.operations import Kind, Operation

TABS: Final = (
    ("load", "Load"),
    ("clients", "Clients"),
    ("configs", "Configs"),
    ("log", "Log"),
    ("changes", "Changes"),
)
MAX_EVENTS: Final = 50
# The id of a cluster: 16 bytes in base64.
MAX_CLUSTER_CHARS: Final = 22
# A page keeps showing an order for this long after its end.
SHOWN_AFTER_MS: Final = 600_000
# The text and the CSS mark of each state of an order.
STATES: Final = {
    OrderState.WAITING: ("stale", "Waiting"),
    OrderState.TAKEN: ("warn", "Under way"),
    OrderState.DONE: ("ok", "Done"),
    OrderState.FAILED: ("bad", "Failed"),
    OrderState.EXPIRED: ("bad", "Expired"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderView:
    """An order as a page shows it, while it is open and for a while afterwards."""

    broker_id: int
    mark: str
    word: str
    sentence: str
    asked_at: datetime
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    at: datetime
    text: str
    who: str
    mark: str = ""
    word: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPage:
    """`row` is None if the cluster has no such broker. Data of the other tabs is not read."""

    frame: Frame
    number: int
    is_whole: bool = True
    tab: str = TABS[0][0]
    tabs: tuple[tuple[str, str], ...] = TABS
    row: BrokerRow | None = None
    can_manage: bool = False
    can_edit: bool = False
    verbs: tuple[str, ...] = ()
    order: OrderView | None = None
    charts: tuple[Chart, ...] = ()
    traffic: Traffic | None = None
    traffic_failure: str = ""
    settings: Settings | None = None
    edited: str = ""  # the key that the form begins with
    events: tuple[Event, ...] = ()
    part: LogPart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    tab: str = ""
    key: str = ""
    log: int = 0  # the log order whose lines are shown; 0: none
    asks_broker: bool = False


def broker(
    cluster_id: str | None, number: int, asked: Asked, rights: Rights
) -> Reading[BrokerPage]:
    tab = asked.tab if asked.tab in dict(TABS) else TABS[0][0]
    asked = replace(asked, tab=tab)
    return last_good.read(
        # Key by the rights too, so that no user gets what was read for another one.
        ("broker", cluster_id, number, asked, rights.grants),
        lambda: _read(cluster_id, number, asked, rights),
        is_empty=lambda data: data.row is None,
    )


def may_manage(rights: Rights, cluster_id: str) -> bool:
    cluster = Resource(kind=Kind.CLUSTER, cluster=cluster_id)
    return rights.allows(Operation.MANAGE_BROKERS, cluster)


def order_view(cluster_id: str, number: int) -> OrderView | None:
    """Return the newest order of a broker, unless it ended long ago."""
    now_ms = int(1000 * time.time())
    newest = orders.newest(cluster_id=cluster_id, now_ms=now_ms).get(number)
    if newest is None:
        return None
    ended_ms = newest.ended_at_ms or newest.deadline_ms
    if not newest.is_open and now_ms > ended_ms + SHOWN_AFTER_MS:
        return None
    place = orders.places(cluster_id=cluster_id).get(number)
    host = place.host if place is not None and place.host else "its host"
    return _order_view(newest, host, now_ms)


def _read(cluster_id: str | None, number: int, asked: Asked, rights: Rights) -> BrokerPage:
    around = frame(cluster_id, rights)
    if around.shown is None:
        return BrokerPage(frame=around, number=number)
    shown = around.shown.cluster_id
    if not may_view(rights, shown):
        return BrokerPage(frame=around, number=number, is_whole=False)
    row = next((row for row in rows_of(shown, around, only=number)), None)
    cluster = Resource(kind=Kind.CLUSTER, cluster=shown)
    can_manage = may_manage(rights, shown)
    page = BrokerPage(
        frame=around,
        number=number,
        tab=asked.tab,
        row=row,
        can_manage=can_manage,
        can_edit=rights.allows(Operation.ALTER_CONFIGS, cluster),
        verbs=verbs_of(row) if row is not None and can_manage else (),
        order=order_view(shown, number),
        edited=asked.key,
    )
    return page if row is None else _with_tab(page, row, shown, asked, rights)


def _with_tab(
    page: BrokerPage, row: BrokerRow, cluster_id: str, asked: Asked, rights: Rights
) -> BrokerPage:
    """Return the page with the data of its tab."""
    match page.tab:
        case "load" | "clients":
            traffic, failure = _traffic(row, cluster_id, rights)
            charts = _charts(cluster_id, row) if page.tab == "load" else ()
            return replace(page, traffic=traffic, traffic_failure=failure, charts=charts)
        case "configs":
            ask = row.address if asked.asks_broker else ""
            return replace(page, settings=settings_of(cluster_id, row.id, ask=ask))
        case "changes":
            return replace(page, events=_events(cluster_id, row.id, rights))
        case "log" if page.can_manage and asked.log:
            return replace(page, part=log_part(cluster_id, row.id, asked.log))
        case _:
            return page


def verbs_of(row: BrokerRow) -> tuple[str, ...]:
    """Return the orders that a broker can take in its present state."""
    if row.held_by:
        return (Verb.START.value,)
    if row.up_since is None:
        return (Verb.START.value, Verb.STOP.value)
    return (Verb.RESTART.value, Verb.STOP.value)


def _traffic(row: BrokerRow, cluster_id: str, rights: Rights) -> tuple[Traffic | None, str]:
    if row.up_since is None:
        return None, f"Broker {row.id} is not up; its counts start at zero once it is."
    known = live.of(cluster_id)
    if known.is_away:
        return None, known.reason
    try:
        found = traffic_of(live.ask("/broker", id=row.id))
    except CollectorFailed as error:
        return None, str(error)
    names = rights.names(Operation.VIEW, cluster=cluster_id, kind=Kind.GROUP)
    return replace(found, groups=tuple(names.among(found.groups))), ""


def _charts(cluster_id: str, row: BrokerRow) -> tuple[Chart, ...]:
    def chart(key: str, title: str, unit: str, **lines: str) -> Chart:
        return Chart(
            id=f"chart-{key}",
            title=title,
            cluster_id=cluster_id,
            kind="broker",
            name=str(row.id),
            metrics=tuple(lines),
            labels=tuple(lines.values()),
            unit=unit,
        )

    return (
        chart("bytes", "Bytes in and out", "bytes/s", bytes_in="In", bytes_out="Out"),
        chart("requests", "Requests", "requests/s", requests="Requests"),
        chart("loop", "Event-loop delay, p99", "ms", loop_delay_p99_ms="Delay"),
        chart("connections", "Connections", "connections", connections="Open"),
        chart("memory", "Memory", "bytes", memory_bytes="Resident"),
        chart("disk", "Disk", "bytes", disk_free_bytes="Free", log_bytes="Logs"),
    )


def _order_view(order: Order, host: str, now_ms: int) -> OrderView:
    mark, word = STATES[order.state]
    return OrderView(
        broker_id=order.broker_id,
        mark=mark,
        word=word,
        sentence=_sentence(order, host, now_ms),
        asked_at=moment(order.asked_at_ms / 1000),
        is_open=order.is_open,
    )


def _sentence(order: Order, host: str, now_ms: int) -> str:
    what = f"{order.verb.value.capitalize()}, ordered by {person(order.actor)}"
    match order.state:
        case OrderState.WAITING:
            left_s = max(0, order.deadline_ms - now_ms) // 1000
            return f"{what}: waits for the agent of {host}, and expires in {left_s} s."
        case OrderState.TAKEN:
            return f"{what}: the agent of {host} has started it."
        case OrderState.EXPIRED:
            return (
                f"{what}: the agent of {host} did not start it in time, and will not. Check there "
                "whether the agent runs (`./samsa status`), then try again."
            )
        case _:
            return f"{what}: {order.message}."


def _events(cluster_id: str, number: int, rights: Rights) -> tuple[Event, ...]:
    """Return events of a broker, newest first: its starts and stops, its orders, its configs."""
    now_ms = int(1000 * time.time())
    lives = selectors.broker_events(cluster_id=cluster_id, broker_id=number, limit=MAX_EVENTS)
    events = [
        Event(
            at=moment(change.made_at_ms / 1000),
            text=f"Broker {change.summary.partition(': ')[2]}",
            who=change.actor,
        )
        for change in lives
    ]
    found = orders.recent(cluster_id=cluster_id, broker_id=number, limit=MAX_EVENTS, now_ms=now_ms)
    for order in found:
        mark, word = STATES[order.state]
        events.append(
            Event(
                at=moment(order.asked_at_ms / 1000),
                text=": ".join(filter(None, (order.verb.value.capitalize(), order.message))),
                who=person(order.actor),
                mark=mark,
                word=word,
            )
        )
    if rights.allows(Operation.VIEW_AUDIT, CONSOLE):
        events += [_entry_event(entry) for entry in _entries(cluster_id, number)]
    place = orders.places(cluster_id=cluster_id).get(number)
    if place is not None and place.ended_how:
        at, words = moment(place.ended_at_ms / 1000), ended_words(place)
        events.append(
            Event(at=at, text=f"Broker {words}", who=place.host, mark="bad", word="Ended")
        )
    return tuple(sorted(events, key=lambda event: event.at, reverse=True)[:MAX_EVENTS])


def _entries(cluster_id: str, number: int) -> list[Entry]:
    which = Filter(name=str(number), subject="broker", kind="alter configs")
    entries = audit.entries(cluster_id=cluster_id, which=which, limit=audit.MAX_ROWS)
    return [entry for entry in entries if entry.name == str(number)][:MAX_EVENTS]


def _entry_event(entry: Entry) -> Event:
    keys = dict.fromkeys((*entry.after, *entry.before))
    values = ", ".join(
        f"{key}: {entry.before.get(key, 'not set')} → {entry.after.get(key, 'not set')}"
        for key in keys
    )
    return Event(
        at=moment(entry.made_at_ms / 1000),
        text=f"Configs: {entry.message if entry.is_refused else values}",
        who=person(entry.actor),
        mark="bad" if entry.is_refused else "ok",
        word="Refused" if entry.is_refused else "Done",
    )
