"""Formats consumer groups as rows and JSON: groups, members and lag."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cli.output import Column, plain, say, show_table
from cli.verdicts import Told
from gateway.kafka.values import Group, GroupSummary, Member, PartitionLag, Place

# Units of a time span, each displayed with the next smaller one.
SECOND: Final = 1000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

LAG_COLUMNS: Final = (
    Column(title="GROUP"),
    Column(title="TOPIC"),
    Column(title="PARTITION", is_number=True),
    Column(title="CURRENT-OFFSET", is_number=True),
    Column(title="LOG-END-OFFSET", is_number=True),
    Column(title="LAG", is_number=True),
    Column(title="LAG-TIME", is_number=True),
)
OWNER_COLUMNS: Final = (
    Column(title="CONSUMER-ID"),
    Column(title="HOST"),
    Column(title="CLIENT-ID"),
)
MEMBER_COLUMNS: Final = (
    Column(title="GROUP"),
    *OWNER_COLUMNS,
    Column(title="#PARTITIONS", is_number=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A partition of a group: its lag, and the member that reads it; one of them may be missing."""

    group: str
    place: Place
    lag: PartitionLag | None
    owner: Member | None

    def cells(self) -> tuple[object, ...]:
        owner = self.owner
        facts = (None,) * 3 if owner is None else (owner.id, owner.host, owner.client_id)
        return (*lag_cells(self.group, self.place, self.lag), *facts)

    def json(self) -> dict[str, Any]:
        owner = self.owner
        return {
            **lag_json(self.group, self.place, self.lag),
            "consumer_id": None if owner is None else owner.id,
            "host": None if owner is None else owner.host,
            "client_id": None if owner is None else owner.client_id,
        }


def rows_of(group: Group, lags: Iterable[PartitionLag]) -> list[Row]:
    """Return a row for each partition that is committed, assigned or both, sorted by place."""
    lag_of: Mapping[Place, PartitionLag] = {
        lag.place: lag for lag in lags if lag.group == group.name
    }
    owner_of = {place: member for member in group.members for place in member.assignment}
    return [
        Row(group=group.name, place=place, lag=lag_of.get(place), owner=owner_of.get(place))
        for place in sorted({*lag_of, *owner_of})
    ]


def show_summaries(groups: list[GroupSummary], verdicts: Mapping[str, Told]) -> None:
    """Show groups, with their verdicts where a collector told them."""
    titles = ("GROUP", "TYPE", "STATE", *(("VERDICT",) if verdicts else ()))
    rows = []
    for group in groups:
        told = verdicts.get(group.name)
        said = (None if told is None else told.word,) if verdicts else ()
        rows.append((group.name, group.type.value, group.state.value, *said))
    show_table([Column(title=title) for title in titles], rows)


def summary_json(group: GroupSummary, told: Told | None) -> dict[str, Any]:
    return {
        "group": group.name,
        "state": group.state.value,
        "type": group.type.value,
        "is_simple": group.is_simple,
        "verdict": None if told is None else told.json(),
    }


def show_group(group: Group, rows: list[Row], told: Told | None) -> None:
    say(plain(group.name), bold=True)
    facts = [
        ("state", group.state.value),
        ("type", group.type.value),
        ("coordinator", group.coordinator),
        ("assignor", group.assignor or None),
        ("members", len(group.members)),
    ]
    if told is not None:
        facts.append(("verdict", told.sentence))
    for label, value in facts:
        say(f"  {label:<12} {plain(value)}")
    if rows:
        show_table([*LAG_COLUMNS, *OWNER_COLUMNS], [row.cells() for row in rows])
    else:
        say("  No offset is committed, and no partition is assigned.")


def group_json(group: Group, rows: list[Row], told: Told | None) -> dict[str, Any]:
    return {
        "group": group.name,
        "state": group.state.value,
        "type": group.type.value,
        "coordinator": group.coordinator,
        "assignor": group.assignor or None,
        "members": len(group.members),
        "verdict": None if told is None else told.json(),
        "partitions": [row.json() for row in rows],
    }


def show_lags(lags: Iterable[PartitionLag]) -> None:
    show_table(LAG_COLUMNS, [lag_cells(lag.group, lag.place, lag) for lag in lags])


def lag_cells(group: str, place: Place, lag: PartitionLag | None) -> tuple[object, ...]:
    where = (group, place.topic, place.partition)
    if lag is None:
        return (*where, None, None, None, None)
    return (*where, lag.committed, lag.end, lag.records, spelled(lag.ms))


def lag_json(group: str, place: Place, lag: PartitionLag | None) -> dict[str, Any]:
    return {
        "group": group,
        "topic": place.topic,
        "partition": place.partition,
        "current_offset": None if lag is None else lag.committed,
        "end_offset": None if lag is None else lag.end,
        "lag": None if lag is None else lag.records,
        "lag_ms": None if lag is None else lag.ms,
        "is_lost": lag is not None and lag.is_lost,
    }


def show_members(group: Group, *, with_assignment: bool) -> None:
    more = (Column(title="INSTANCE-ID"), Column(title="ASSIGNMENT")) if with_assignment else ()
    show_table(
        [*MEMBER_COLUMNS, *more],
        [
            (
                *(group.name, member.id, member.host, member.client_id, len(member.assignment)),
                *((member.instance_id, assigned(member)) if with_assignment else ()),
            )
            for member in group.members
        ],
    )


def member_json(group: Group, member: Member) -> dict[str, Any]:
    return {
        "group": group.name,
        "consumer_id": member.id,
        "host": member.host,
        "client_id": member.client_id,
        "instance_id": member.instance_id,
        "assignment": [_place_json(place) for place in member.assignment],
        "target": None
        if member.target is None
        else [_place_json(place) for place in member.target],
    }


def assigned(member: Member) -> str | None:
    """Format partitions like Kafka's tool: orders(0,1), clicks(2)."""
    by_topic: dict[str, list[int]] = {}
    for place in member.assignment:
        by_topic.setdefault(place.topic, []).append(place.partition)
    return ", ".join(f"{topic}({plain(indexes)})" for topic, indexes in by_topic.items()) or None


def spelled(ms: int | None) -> str | None:
    """Format a time span for readers: 0s, 0.4s, 12.3s, 3m05s, 5h07m, 3d04h."""
    if ms is None:
        return None
    if ms == 0:
        return "0s"
    if ms < MINUTE:
        # Do not show less than a tenth of a second as zero.
        return f"{max(ms // 100, 1) / 10}s"
    if ms < HOUR:
        return f"{ms // MINUTE}m{ms % MINUTE // SECOND:02}s"
    if ms < DAY:
        return f"{ms // HOUR}h{ms % HOUR // MINUTE:02}m"
    return f"{ms // DAY}d{ms % DAY // HOUR:02}h"


def _place_json(place: Place) -> dict[str, Any]:
    return {"topic": place.topic, "partition": place.partition}
