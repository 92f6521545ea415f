"""Looks at all consumer groups by calls of Kafka's protocol: nothing else is known of them.

ListGroups, DescribeGroups or ConsumerGroupDescribe, OffsetFetch and ListOffsets, as any client asks
them. Joins no group.
"""

from collections.abc import Callable
from typing import Final

from bench.verdict_judge import Look, Spot
from gateway.kafka.admin_calls import AdminCalls
from gateway.kafka.bounds import bounds
from gateway.kafka.connection import Connection
from gateway.kafka.groups import Groups
from gateway.kafka.values import Group, Place

Bounds = dict[Place, tuple[int, int]]
CLIENT_ID: Final = "judge"


class WireCalls:
    """An admin connection that looks at groups. Not thread-safe."""

    def __init__(self, bootstrap: str, *, now_s: Callable[[], float]) -> None:
        connection = Connection(bootstrap=bootstrap, client_id=CLIENT_ID)
        self._groups = Groups(connection)
        self._calls = AdminCalls(connection)
        self._now_s = now_s

    def look(self) -> dict[str, Look]:
        """Return every group that the brokers list, by name."""
        names = [summary.name for summary in self._groups.summaries() if summary.name]
        found = self._groups.find(names)
        offsets = self._groups.offsets(list(found))
        owned = {name: owned_by(group) for name, group in found.items()}
        places = {place for name in found for place in (*offsets[name], *owned[name])}
        held = bounds(self._calls, places)
        at_s = self._now_s()
        return {
            name: Look(
                at_s=at_s,
                members=frozenset(member.id for member in group.members),
                spots=spots_of(offsets[name], owned[name], held),
            )
            for name, group in found.items()
        }


def owned_by(group: Group) -> set[Place]:
    return {place for member in group.members for place in member.assignment}


def spots_of(committed: dict[Place, int], owned: set[Place], held: Bounds) -> dict[Place, Spot]:
    """Return what is known of each partition; one that no leader answers for is left out."""
    return {
        place: Spot(
            committed=committed.get(place),
            start=held[place][0],
            end=held[place][1],
            is_owned=place in owned,
        )
        for place in sorted({*committed, *owned})
        if place in held
    }
