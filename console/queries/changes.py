"""Reads the audit log of all changes, done or refused: as a page, a single entry or a file."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final
from urllib.parse import urlencode

from django.utils import timezone

from brokers.controlplane import audit
from brokers.controlplane.audit import Entry, Filter
from brokers.controlplane.services import (
    AccessChangeKind,
    ConnectorChangeKind,
    ExtraChangeKind,
    GroupChangeKind,
    OrderKind,
)
from console import times
from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good, moment
from console.spreadsheets import cell
from gateway import moments
from gateway.access.grants import Rights
from gateway.kafka import shown_names

PAGE_ROWS: Final = 100
# No stored name or principal is longer.
MAX_FILTER: Final = 249
# Entries of one file, built in memory: about ten megabytes. A file that is cut here says where the
# next one continues.
MAX_EXPORTED: Final = 10_000
# No entry number has more digits.
MAX_DIGITS: Final = 18
HOUR_MS: Final = 3_600_000
LASTING: Final = {
    "hour": ("last hour", HOUR_MS),
    "day": ("last 24 hours", 24 * HOUR_MS),
    "week": ("last 7 days", 7 * 24 * HOUR_MS),
    "month": ("last 30 days", 30 * 24 * HOUR_MS),
}
# Days of the calendar, in the zone of the page.
TODAY, YESTERDAY = "today", "yesterday"
PERIODS: Final = {
    TODAY: "today",
    YESTERDAY: "yesterday",
    **{key: words for key, (words, _) in LASTING.items()},
}
# Samsa's own clients that act for no user. What is refused to them is no matter of a user.
WORKERS: Final = frozenset({"samsa-connect", "samsa-collector"})
KINDS: Final = (
    *("create topic", "delete topic", "add partitions", "alter configs"),
    *(kind.value for kind in GroupChangeKind),
    *(kind.value for kind in OrderKind),
    *(kind.value for kind in AccessChangeKind),
    *(kind.value for kind in ConnectorChangeKind),
    *(kind.value for kind in ExtraChangeKind),
)
# Kinds of changes with one side only, where the missing side is not a missing value.
MADE_OR_GONE: Final = frozenset(
    {
        *("create topic", "delete topic"),
        *(AccessChangeKind.CREATE_USER, AccessChangeKind.DELETE_USER),
        *(AccessChangeKind.GIVE_RIGHT, AccessChangeKind.TAKE_RIGHT),
        *(AccessChangeKind.CREATE_TOKEN, AccessChangeKind.END_SESSIONS),
        *(ConnectorChangeKind.CREATE_CONNECTOR, ConnectorChangeKind.DELETE_CONNECTOR),
        ExtraChangeKind.INSTALL_EXTRA,
    }
)
VIA: Final = {
    "wire": "Kafka protocol",
    "browser": "browser",
    "rest": "REST",
    "host": "command on the host",
}
OUTCOMES: Final = {"done": False, "refused": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The filter of a visitor, as links and fields repeat it."""

    name: str = ""
    actor: str = ""
    kind: str = ""
    outcome: str = ""
    period: str = ""
    since: str = ""  # instants, where no period is chosen
    until: str = ""
    # Include what was refused to Samsa's own workers.
    has_workers: bool = False
    below: int | None = None

    @property
    def is_narrowed(self) -> bool:
        spans = self.period or self.since or self.until
        return bool(self.name or self.actor or self.kind or self.outcome or spans)

    @property
    def query(self) -> str:
        """Return the filter as a query string, without the place in the list."""
        given = {"q": self.name, "actor": self.actor, "kind": self.kind, "outcome": self.outcome}
        given |= {"period": self.period, "since": self.since, "until": self.until}
        given |= {"workers": "shown" if self.has_workers else "hidden"}
        return urlencode({key: text for key, text in given.items() if text})

    def filter(self, now: datetime) -> Filter:
        since, until = _span(self, now)
        return Filter(
            actor=self.actor,
            name=self.name,
            kind=self.kind,
            is_refused=OUTCOMES.get(self.outcome),
            since_ms=since,
            until_ms=until,
            quiet_clients=frozenset() if self.has_workers else WORKERS,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    number: int
    at: datetime
    last_at: datetime
    actor: str
    source: str  # the interface, the address and the client
    kind: str
    what: str  # the object in words
    state: str  # the CSS class of the mark: ok or bad
    word: str
    detail: str
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value of an object before and after; None: not set, or absent."""

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    frame: Frame
    asked: Asked
    rows: tuple[ChangeRow, ...] = ()
    older: int | None = None  # the next page ends below this number
    kinds: tuple[str, ...] = KINDS
    periods: tuple[tuple[str, str], ...] = tuple(PERIODS.items())
    # The own period as fields of the page's zone.
    since: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePage:
    frame: Frame
    row: ChangeRow | None = None
    entry: Entry | None = None
    via: str = ""
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    content: str
    content_type: str
    name: str
    older: int | None  # where the next file continues; None: this was the last one


def changes(cluster_id: str | None, asked: Asked, rights: Rights) -> Reading[Changes]:
    return last_good.read(
        # Key by the rights too, so that no user gets what was read for another one.
        ("changes", cluster_id, asked, timezone.get_current_timezone_name(), rights.grants),
        lambda: _read(cluster_id, asked, rights),
        is_empty=lambda data: not data.rows,
    )


def change(cluster_id: str | None, number: int, rights: Rights) -> Reading[ChangePage]:
    return last_good.read(
        ("change", cluster_id, number, rights.grants),
        lambda: _read_one(cluster_id, number, rights),
        is_empty=lambda data: data.entry is None,
    )


def asked_of(values: Mapping[str, str], *, has_workers: bool = False) -> Asked:
    """Return the filter of a query string; invalid values are ignored.

    `has_workers` is what holds where the query does not say it. Raises NotAMoment for a time range
    that means none.
    """
    period = _one_of(values.get("period", ""), tuple(PERIODS))
    since, until = ("", "") if period else _instants(values)
    workers = values.get("workers", "")
    below = values.get("below", "")
    is_number = below.isascii() and below.isdigit() and len(below) <= MAX_DIGITS
    return Asked(
        name=_text(values.get("q", "")),
        actor=_text(values.get("actor", "")),
        kind=_one_of(values.get("kind", ""), KINDS),
        outcome=_one_of(values.get("outcome", ""), tuple(OUTCOMES)),
        period=period,
        since=since,
        until=until,
        has_workers=workers == "shown" if workers else has_workers,
        below=int(below) if is_number else None,
    )


def exported(cluster_id: str, asked: Asked, *, is_csv: bool) -> File:
    """Return the newest matching entries as a file; database errors propagate."""
    which = asked.filter(timezone.now())
    found = audit.all_entries(cluster_id=cluster_id, which=which, below=asked.below)
    entries = list(islice(found, MAX_EXPORTED))
    is_cut = len(entries) == MAX_EXPORTED
    return File(
        content=_as_csv(entries) if is_csv else "".join(map(_as_line, entries)),
        content_type="text/csv; charset=utf-8" if is_csv else "application/x-ndjson",
        name=f"changes-{cluster_id}.{'csv' if is_csv else 'ndjson'}",
        older=entries[-1].number if is_cut else None,
    )


def _instants(values: Mapping[str, str]) -> tuple[str, str]:
    """Return the ends of a time range as instants. Raises NotAMoment."""
    zone, now = timezone.get_current_timezone(), timezone.now()
    since, until = (values.get(name, "").strip() for name in ("since", "until"))
    moments.span(since, until, zone=zone, now=now)
    first, last = (
        moments.absolute(text, zone=zone, now=now) if text else "" for text in (since, until)
    )
    return first, last


def _span(asked: Asked, now: datetime) -> tuple[int | None, int | None]:
    """Return the first moment of a period and the one after its last, in milliseconds."""
    zone = timezone.get_current_timezone()
    today = now.astimezone(zone).date()
    midnight = moments.milliseconds_of(moments.start_of_day(today, zone))
    if asked.period == TODAY:
        return midnight, None
    if asked.period == YESTERDAY:
        day_before = moments.start_of_day(today - timedelta(days=1), zone)
        return moments.milliseconds_of(day_before), midnight
    if asked.period in LASTING:
        return moments.milliseconds_of(now) - LASTING[asked.period][1], None
    return moments.span(asked.since, asked.until, zone=zone, now=now)


def _text(text: str) -> str:
    # No name holds a NUL, and PostgreSQL rejects a query with one.
    return text.replace("\0", "").strip()[:MAX_FILTER]


def _one_of(text: str, allowed: tuple[str, ...]) -> str:
    return text if text in allowed else ""


def _read(cluster_id: str | None, asked: Asked, rights: Rights) -> Changes:
    around = frame(cluster_id, rights)
    if around.shown is None:
        return Changes(frame=around, asked=asked)
    zone, now = timezone.get_current_timezone(), timezone.now()
    found = audit.entries(
        cluster_id=around.shown.cluster_id,
        which=asked.filter(now),
        below=asked.below,
        limit=PAGE_ROWS + 1,
    )
    shown = found[:PAGE_ROWS]
    return Changes(
        frame=around,
        asked=asked,
        rows=tuple(map(_row, shown)),
        older=shown[-1].number if len(found) > PAGE_ROWS else None,
        since=moments.in_field(asked.since, zone=zone, now=now),
        until=moments.in_field(asked.until, zone=zone, now=now),
    )


def _read_one(cluster_id: str | None, number: int, rights: Rights) -> ChangePage:
    around = frame(cluster_id, rights)
    if around.shown is None:
        return ChangePage(frame=around)
    entry = audit.entry(cluster_id=around.shown.cluster_id, number=number)
    if entry is None:
        return ChangePage(frame=around)
    return ChangePage(
        frame=around,
        row=_row(entry),
        entry=entry,
        via=VIA.get(entry.via, entry.via),
        values=tuple(values_of(entry)),
    )


def values_of(entry: Entry) -> Iterator[Value]:
    """Yield every value before and after, in the order in which they were written."""
    for key in dict.fromkeys((*entry.after, *entry.before)):
        yield Value(key=key, before=entry.before.get(key), after=entry.after.get(key))


def _row(entry: Entry) -> ChangeRow:
    source = [VIA.get(entry.via, entry.via), entry.client_id, entry.address]
    return ChangeRow(
        number=entry.number,
        at=moment(entry.made_at_ms / 1000),
        last_at=moment(entry.last_at_ms / 1000),
        actor=entry.actor,
        source=" · ".join(filter(None, source)),
        kind=entry.kind,
        what=f"{entry.subject} {shown_names.shown(entry.name)}"
        if entry.name
        else f"several of kind {entry.subject}",
        state=_state(entry),
        word="Refused" if entry.is_refused else "Begun" if entry.is_begun else "Done",
        detail=entry.message if entry.is_refused else _summary(entry),
        times=entry.times,
    )


def _state(entry: Entry) -> str:
    if not entry.is_refused:
        return "stale" if entry.is_begun else "ok"
    return "stale" if entry.client_id in WORKERS else "bad"


def _summary(entry: Entry) -> str:
    """Return a one-line summary: the values that differ, or those of a new or deleted object."""
    if entry.kind not in MADE_OR_GONE:
        return ", ".join(
            f"{v.key}: {v.before or 'not set'} → {v.after or 'not set'}"
            for v in values_of(entry)
            if v.before != v.after and not v.key.startswith("replicas ")
        )
    values = entry.before or entry.after
    return ", ".join(
        f"{key}: {value}"
        for key, value in values.items()
        if key != "topic id" and not key.startswith("replicas ")
    )


_COLUMNS: Final = (
    *("number", "at", "last_at", "times", "actor", "via", "client_id", "address", "session"),
    *("kind", "subject", "name", "outcome", "message", "before", "after", "version", "digest"),
)


def _flat(entry: Entry) -> dict[str, object]:
    values: dict[str, object] = {
        name: getattr(entry, name) for name in _COLUMNS if name not in {"at", "last_at"}
    }
    at, last_at = (moment(ms / 1000) for ms in (entry.made_at_ms, entry.last_at_ms))
    values |= {"at": times.exported(at), "last_at": times.exported(last_at)}
    return {name: values[name] for name in _COLUMNS}


def _as_line(entry: Entry) -> str:
    return json.dumps(_flat(entry), ensure_ascii=False) + "\n"


def _as_csv(entries: list[Entry]) -> str:
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(_COLUMNS)
    for entry in entries:
        rows.writerow([cell(value) for value in _flat(entry).values()])
    return out.getvalue()
