"""Reads the list of brokers from the database and the collector."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from brokers.cluster.image import Broker
from brokers.controlplane import orders, selectors
from brokers.controlplane.orders import Order, Place
from brokers.disk_room import Room
from console.monitoring.tables import BrokerRow as Told
from console.queries.broker_states import BrokerState, state_of
from console.queries.frame import Frame, frame
from console.queries.fullness import NOW, UNKNOWN, Fullness, forecasts
from console.queries.reading import Reading, last_good, moment
from gateway.access.grants import Resource, Rights
from gateway.access.operations import Kind, Operation

# Disks whose series are read: each costs the collector a millisecond. A cluster with more brokers
# shows the others on their own pages.
MAX_ASKED: Final = 24
# A disk above these is marked; log cleaning and the filesystem both need free space.
WARN_USED: Final = 0.80
BAD_USED: Final = 0.90


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    size: int
    free: int
    used: float  # 0 to 1, as `df` shows it
    state: str
    used_bytes: int
    device: int | None = None  # its number on the host; None from an older release
    is_full: bool = False  # so that brokers refuse records

    @property
    def percent(self) -> int:
        return round(100 * self.used)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """One broker; an unknown number is None."""

    id: int
    address: str
    host: str
    rack: str | None
    epoch: int
    state: BrokerState
    state_since: datetime | None
    leaders: int
    up_since: datetime | None  # None while it is down
    held_by: str
    takes_orders: bool
    disk: Disk | None
    fullness: Fullness
    bytes_in: float | None
    bytes_out: float | None
    requests: float | None
    connections: int | None
    loop_delay_ms: float | None
    memory_bytes: int | None
    log_bytes: int | None
    folders_aside: int = 0
    # How it ended last without an order, and when; empty and None if it did not.
    ended: str = ""
    ended_at: datetime | None = None

    @property
    def logs_share(self) -> float | None:
        """The share of its logs in what is used of the disk; None if one of them is unknown."""
        if self.disk is None or self.log_bytes is None or not self.disk.used_bytes:
            return None
        return min(1.0, self.log_bytes / self.disk.used_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    key: str
    title: str
    is_number: bool
    value: Callable[[BrokerRow], Any]


def _number(key: str, title: str) -> Column:
    return Column(key=key, title=title, is_number=True, value=attrgetter(key))


COLUMNS: Final = (
    Column(key="id", title="Broker", is_number=False, value=lambda row: row.id),
    Column(key="state", title="State", is_number=False, value=lambda row: row.state.rank),
    _number("leaders", "Leads"),
    _number("bytes_in", "In"),
    _number("bytes_out", "Out"),
    _number("requests", "Requests"),
    _number("connections", "Connections"),
    _number("loop_delay_ms", "Loop p99"),
    _number("memory_bytes", "Memory"),
    _number("log_bytes", "Logs"),
    Column(
        key="disk",
        title="Disk used",
        is_number=False,
        value=lambda row: None if row.disk is None else row.disk.used,
    ),
)
KEYS: Final = {column.key: column for column in COLUMNS}
DEFAULT_SORT: Final = "id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    title: str
    is_number: bool
    sort: str  # the sort order that a click selects
    direction: str  # ascending, descending, or empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    frame: Frame
    # False if the user may not see the cluster itself.
    is_whole: bool = True
    rows: tuple[BrokerRow, ...] = ()
    headings: tuple[Heading, ...] = ()


def brokers(cluster_id: str | None, sort: str, rights: Rights) -> Reading[Brokers]:
    sort = sort if sort.removeprefix("-") in KEYS else DEFAULT_SORT
    return last_good.read(
        # Key by the rights too, so that no user gets what was read for another one.
        ("brokers", cluster_id, sort, rights.grants),
        lambda: _read(cluster_id, sort, rights),
        is_empty=lambda data: not data.rows,
    )


def may_view(rights: Rights, cluster_id: str) -> bool:
    return rights.allows(Operation.VIEW, Resource(kind=Kind.CLUSTER, cluster=cluster_id))


def _read(cluster_id: str | None, sort: str, rights: Rights) -> Brokers:
    around = frame(cluster_id, rights)
    if around.shown is None:
        return Brokers(frame=around)
    shown = around.shown.cluster_id
    if not may_view(rights, shown):
        return Brokers(frame=around, is_whole=False)
    rows = rows_of(shown, around)
    return Brokers(frame=around, rows=tuple(_sorted(rows, sort)), headings=_headings(sort))


def rows_of(cluster_id: str, around: Frame, *, only: int | None = None) -> list[BrokerRow]:
    """Return the brokers of a cluster by id, or one of them."""
    assert around.live is not None, "a frame with a cluster has its live data"
    now_ms = int(1000 * time.time())
    told = {row.id: row for row in around.live.snapshot.brokers()}
    places = orders.places(cluster_id=cluster_id)
    newest = orders.newest(cluster_id=cluster_id, now_ms=now_ms)
    leaders = selectors.leader_counts(cluster_id=cluster_id)
    found = [
        broker
        for broker in selectors.brokers(cluster_id=cluster_id)
        if only is None or broker.id == only
    ]
    asked = [broker.id for broker in found[:MAX_ASKED] if broker.id in told]
    # If the tables are stale, the collector would not answer this question either.
    full = forecasts.of(asked) if around.live.is_fresh else {}
    return [
        row_of(
            broker,
            places.get(broker.id),
            newest.get(broker.id),
            told.get(broker.id),
            leaders=leaders.get(broker.id, 0),
            fullness=full.get(broker.id, UNKNOWN),
            now_ms=now_ms,
        )
        for broker in found
    ]


def row_of(
    broker: Broker,
    place: Place | None,
    order: Order | None,
    told: Told | None,
    *,
    leaders: int,
    fullness: Fullness,
    now_ms: int,
) -> BrokerRow:
    disk = disk_of(told)
    is_full = disk is not None and disk.is_full
    state = state_of(broker, place, order, told, is_full=is_full, now_ms=now_ms)
    is_up = not broker.is_fenced and place is not None
    # The last data of a broker that is down is only valid for its disk.
    live = None if told is None or not is_up or told.failure else told
    return BrokerRow(
        id=broker.id,
        address=f"{broker.host}:{broker.port}",
        host=place.host if place is not None else "",
        rack=broker.rack,
        epoch=broker.epoch,
        state=state,
        state_since=moment(state.since_ms / 1000) if state.since_ms else None,
        leaders=leaders,
        up_since=moment(place.registered_at_ms / 1000) if is_up and place else None,
        held_by=place.held_by if place is not None else "",
        takes_orders=place is not None and place.takes_orders,
        disk=disk,
        fullness=NOW if is_full else fullness,
        bytes_in=None if live is None else live.bytes_in_per_s,
        bytes_out=None if live is None else live.bytes_out_per_s,
        requests=None if live is None else live.requests_per_s,
        connections=None if live is None else live.connections,
        loop_delay_ms=None if live is None else live.loop_delay_p99_ms,
        memory_bytes=None if live is None else live.memory_bytes,
        log_bytes=None if told is None else told.log_bytes,
        folders_aside=0 if told is None else told.folders_aside or 0,
        ended=ended_words(place) if place is not None else "",
        ended_at=moment(place.ended_at_ms / 1000) if place and place.ended_how else None,
    )


def ended_words(place: Place) -> str:
    """Return how a broker ended last, and how often it did; empty if it did not."""
    if not place.ended_how:
        return ""
    times = place.ended_times
    often = "the first time" if times == 1 else f"{times} times"
    return f"{place.ended_how}, {often} since its home started"


def disk_of(told: Told | None) -> Disk | None:
    if told is None or not told.disk_size_bytes or told.disk_free_bytes is None:
        return None
    used_bytes = told.disk_used_bytes
    if used_bytes is None:
        used_bytes = max(0, told.disk_size_bytes - told.disk_free_bytes)
    room = Room(
        device=told.disk_device or 0,
        size_bytes=told.disk_size_bytes,
        used_bytes=used_bytes,
        free_bytes=told.disk_free_bytes,
    )
    used, is_full = room.used_share, room.free_bytes < room.records_floor
    return Disk(
        size=room.size_bytes,
        free=room.free_bytes,
        used=used,
        state="bad" if is_full or used >= BAD_USED else "warn" if used >= WARN_USED else "ok",
        used_bytes=used_bytes,
        device=told.disk_device,
        is_full=is_full,
    )


def _sorted(rows: list[BrokerRow], sort: str) -> list[BrokerRow]:
    """Sort rows by a column; those without a value come last in either direction."""
    value = KEYS[sort.removeprefix("-")].value
    known = [row for row in rows if value(row) is not None]
    known.sort(key=value, reverse=sort.startswith("-"))
    return [*known, *(row for row in rows if value(row) is None)]


def _headings(sort: str) -> tuple[Heading, ...]:
    sorted_by, is_descending = sort.removeprefix("-"), sort.startswith("-")
    return tuple(_heading(column, sorted_by, is_descending=is_descending) for column in COLUMNS)


def _heading(column: Column, sorted_by: str, *, is_descending: bool) -> Heading:
    if column.key == sorted_by:
        other = column.key if is_descending else f"-{column.key}"
        direction = "descending" if is_descending else "ascending"
        return Heading(
            title=column.title, is_number=column.is_number, sort=other, direction=direction
        )
    # Sort numbers by the largest first.
    sort = f"-{column.key}" if column.is_number else column.key
    return Heading(title=column.title, is_number=column.is_number, sort=sort, direction="")
