"""Computes the lag of groups, in records and in time, from the feeds of all brokers.

Uses the brokers' inspection ports only. A group's committed offsets come from its coordinator, a
partition's end from its leader, and both may be any broker; only a leader is asked for the time of
a record, and only if a group is behind it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from brokers.inspection.client import InspectionFailed

# Places that one broker is asked for in one refresh. Each may make it open a batch, so this many
# take it some tenths of a second at worst; the others keep their earlier result.
MAX_ASKED: Final = 2_000

# topic, index; and with an offset
Partition: TypeAlias = tuple[str, int]
Place: TypeAlias = tuple[str, int, int]
CommitKey: TypeAlias = tuple[str, str, int]


class Watched(Protocol):
    """The interface to a broker; `brokers.inspection.client.Inspection` implements it."""

    @property
    def name(self) -> str: ...

    def feed(self) -> Mapping[str, Any]: ...

    def times(self, places: Sequence[Place]) -> list[int | str | None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """A group as reported by its coordinator."""

    group: str
    type: str
    state: str
    epoch: int  # or the generation of a classic one
    members: int
    rebalances: int  # since the coordinator loaded the group


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """The lag of a group in a partition.

    `end`, the end of the partition's readable records, and `records` are None if no broker reports
    the partition; `ms`, the age of the next record, is None if its time is not known. `is_lost`:
    the committed offset is no longer in the log, and the lag counts from the first one that is.
    """

    group: str
    topic: str
    partition: int
    committed: int
    commit_ms: int
    end: int | None
    records: int | None
    ms: int | None
    is_lost: bool


@dataclass(frozen=True, slots=True)
class _Bounds:
    """A partition as its leader reported it at `ms` of its own clock."""

    start: int
    high_watermark: int
    ms: int


class LagBoard:
    """Not thread-safe. `refresh` asks the brokers; the other methods return the results."""

    def __init__(self, brokers: Iterable[Watched]) -> None:
        self._brokers = [_BrokerView(broker) for broker in brokers]
        # The write time of the record at each place, None if it is unknown; the place that was
        # asked longest ago comes first.
        self._times: dict[Place, int | None] = {}

    def refresh(self) -> None:
        """Update everything. A broker that does not answer is left out until it does."""
        for view in self._brokers:
            view.refresh()
        self._refresh_times()

    @property
    def failures(self) -> dict[str, str]:
        """The failures of the last refresh, by broker."""
        return {view.name: view.failure for view in self._brokers if view.failure}

    def groups(self) -> list[GroupState]:
        """Return all groups, by name."""
        found = {row[0]: row for view in self._present() for row in view.groups.values()}
        return [
            GroupState(
                group=group,
                type=kind,
                state=state,
                epoch=epoch,
                members=members,
                rebalances=rebalances,
            )
            for group, kind, state, epoch, members, rebalances in (
                found[name] for name in sorted(found)
            )
        ]

    def lags(self) -> list[PartitionLag]:
        """Return each group's partitions with committed offsets, in order."""
        bounds = self._bounds()
        return [
            self._lag(key, commit, bounds.get(key[1:])) for key, commit in sorted(self._commits())
        ]

    def _present(self) -> Iterator["_BrokerView"]:
        """Yield the views without failure; of two that report the same, the newest comes last."""
        return iter(
            sorted((view for view in self._brokers if not view.failure), key=lambda view: view.ms)
        )

    def _bounds(self) -> dict[Partition, _Bounds]:
        return {
            partition: _Bounds(row[2], row[3], view.ms)
            for view in self._present()
            for partition, row in view.partitions.items()
        }

    def _commits(self) -> Iterator[tuple[CommitKey, tuple[int, int]]]:
        found = {key: row for view in self._present() for key, row in view.commits.items()}
        return ((key, (row[3], row[5])) for key, row in found.items())

    def _lag(self, key: CommitKey, commit: tuple[int, int], bounds: _Bounds | None) -> PartitionLag:
        group, topic, index = key
        committed, commit_ms = commit
        records: int | None = None
        ms: int | None = None
        if bounds is not None:
            following = max(committed, bounds.start)
            # A commit beyond the end is of a log that was cut; there is no lag.
            records = max(0, bounds.high_watermark - following)
            written_ms = self._times.get((topic, index, following))
            if records == 0:
                ms = 0
            elif written_ms is not None:
                # A producer's clock may be ahead of the broker's.
                ms = max(0, bounds.ms - written_ms)
        return PartitionLag(
            group=group,
            topic=topic,
            partition=index,
            committed=committed,
            commit_ms=commit_ms,
            end=None if bounds is None else bounds.high_watermark,
            records=records,
            ms=ms,
            is_lost=bounds is not None and committed < bounds.start,
        )

    def _refresh_times(self) -> None:
        bounds = self._bounds()
        wanted: dict[Place, None] = {}
        for (_group, topic, index), (committed, _commit_ms) in self._commits():
            here = bounds.get((topic, index))
            if here is not None and committed < here.high_watermark:
                wanted[topic, index, max(committed, here.start)] = None
        self._times = {place: ms for place, ms in self._times.items() if place in wanted}
        unknown = [place for place in wanted if place not in self._times]
        # Known places are asked again in turn: the topic may be another one of the same name.
        in_turn = [*unknown, *self._times]
        for view in self._present():
            asked = [place for place in in_turn if place[:2] in view.partitions][:MAX_ASKED]
            for place, ms in zip(asked, view.times(asked), strict=False):
                # Places without a known time wait for their turn like the others.
                self._times.pop(place, None)
                self._times[place] = ms if isinstance(ms, int) else None


class _BrokerView:
    """The state of one broker, combined from its feed."""

    def __init__(self, broker: Watched) -> None:
        self.name = broker.name
        self.failure = ""
        self.ms = 0
        self.partitions: dict[Partition, list[Any]] = {}
        self.groups: dict[str, list[Any]] = {}
        self.commits: dict[CommitKey, list[Any]] = {}
        self._broker = broker

    def refresh(self) -> None:
        try:
            told = self._broker.feed()
        except InspectionFailed as error:
            self.failure = str(error)
            return
        self.failure = ""
        self.ms = told["ms"]
        if told["kind"] == "snapshot":
            self.partitions, self.groups, self.commits = {}, {}, {}
            self._take(told)
        else:
            for step in told["steps"]:
                self._take(step)

    def times(self, places: Sequence[Place]) -> list[int | str | None]:
        """Return the broker's result for each place; empty if it does not answer."""
        try:
            return self._broker.times(places) if places else []
        except InspectionFailed as error:
            self.failure = str(error)
            return []

    def _take(self, told: Mapping[str, Any]) -> None:
        # A broker of an older release reports no groups.
        for topic, index in told.get("gone", ()):
            self.partitions.pop((topic, index), None)
        for group in told.get("groups_gone", ()):
            self.groups.pop(group, None)
        for group, topic, index in told.get("commits_gone", ()):
            self.commits.pop((group, topic, index), None)
        for row in told["rows"]:
            self.partitions[row[0], row[1]] = row
        for row in told.get("groups", ()):
            self.groups[row[0]] = row
        for row in told.get("commits", ()):
            self.commits[row[0], row[1], row[2]] = row
