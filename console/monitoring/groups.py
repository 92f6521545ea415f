"""Holds one consumer group as its coordinator reports it, and its offsets in each topic.

Pure. Knows whether something reads the group: members, or a client that commits without joining,
as those that assign their own partitions do. Offsets that are set once, by a reset, are no reader,
and neither are any that are set for a group that had members: its readers join.
"""

from collections.abc import Sequence
from typing import Any, Final

from console.monitoring.history import History
from console.monitoring.rebalances import Rebalances, Source
from console.monitoring.verdicts import CAUGHT_UP, EMPTY, Eta, Owned, Rates, Reader, Verdict

Row = Sequence[Any]
# Commits that move on, at different times and without a member, until they count as reading: an
# operator who resets a group sets its offsets once or twice.
ALONE: Final = 3
# Commits of one call have nearly the same time.
APART_MS: Final = 1_000
# Places in a row.
TYPE: Final = 1
MEMBERS: Final = 4
REBALANCES: Final = 5
# The type of the groups whose readers always join.
CONSUMER: Final = "consumer"


class Pair:
    """A pair of group and topic."""

    __slots__ = (
        *("eta", "group", "history", "is_queued", "lag", "longer", "looked_ms", "owned", "read_ms"),
        *("recent", "rule", "since_ms", "sums", "topic", "uncommitted", "unknown", "verdict"),
        *("verdict_ms", "watched_ms", "worst_partition", "written_ms"),
    )

    def __init__(self, group: str, topic: str) -> None:
        self.group = group
        self.topic = topic
        self.history = History()
        self.looked_ms = 0  # the time of the last look
        self.is_queued = False  # a look is scheduled even without changes
        # Committed offsets, end offsets, and the partitions that they are of.
        self.sums: tuple[int, int, int] | None = None
        self.lag = 0
        self.unknown = 0
        self.verdict = Verdict.UNKNOWN
        self.rule = CAUGHT_UP.key
        self.verdict_ms = 0  # when it became the verdict
        self.since_ms = 0  # since when it is true, if its rule tells
        self.worst_partition = -1
        self.recent: Rates | None = None
        self.longer: Rates | None = None
        self.read_ms = 0  # when the group was last seen to read
        self.watched_ms = 0  # when the longer average began
        self.eta: Eta | None = None
        # The timestamp of the oldest unread record; 0 if unknown.
        self.written_ms = 0
        # Partitions that members own without a commit: the end when that was seen first.
        self.uncommitted: dict[int, int] = {}
        self.owned: Owned | None = None  # what is known of them; None without any

    @property
    def is_empty(self) -> bool:
        return not len(self.history) and not self.uncommitted


class Group:
    """A group as its coordinator reports it, with its committed offsets."""

    __slots__ = (
        *("_alone", "_has_joined", "came_ms", "gone_ms", "has_members", "is_read", "judged_ms"),
        "members",
        *("name", "owned", "owner", "pairs", "rebalances", "row", "rule", "seen_ms", "since_ms"),
        *("verdict", "verdict_ms"),
    )

    def __init__(self, name: str, owner: int, now_ms: int) -> None:
        self.name = name
        self.owner = owner
        self.row: Row = (name, "", "", 0, 0, 0)
        self.pairs: dict[str, Pair] = {}
        self.members: dict[str, Row] = {}
        self.owned = 0  # partitions of all members
        self.has_members = False
        self.is_read = False  # by members, or by a client that commits without joining
        self.seen_ms = now_ms  # when it was first reported
        self.came_ms = 0  # when its reader came, and when it left; 0 if that was not seen
        self.gone_ms = 0
        self.rebalances = Rebalances()
        self.verdict = Verdict.UNKNOWN
        self.rule = EMPTY.key
        self.verdict_ms = 0
        self.since_ms = 0
        self.judged_ms = 0
        self._has_joined = False  # whether it is known to have had members
        # The latest commits that moved on while the group had no member.
        self._alone: tuple[int, ...] = ()

    def take(self, row: Row, source: Source, now_ms: int) -> bool:
        """Take over its coordinator's row; return whether a reader has come or gone."""
        is_first, before, had_members = not self.row[TYPE], self.is_read, self.has_members
        self.owner, self.row = source[0], row
        self.has_members = bool(row[MEMBERS])
        if self.has_members or row[REBALANCES] or row[TYPE] == CONSUMER:
            self._has_joined, self._alone = True, ()
        self.rebalances.take(row[REBALANCES], source, now_ms)
        if self.has_members:
            self.gone_ms = 0
        elif had_members:
            self.came_ms, self.gone_ms = 0, now_ms
        self._settle()
        if self.is_read and not before and not is_first:
            self._begin(now_ms)
        return self.is_read != before

    def take_commit(self, commit_ms: int, now_ms: int) -> bool:
        """Note a commit that moves on without a member; return whether a reader has come."""
        before = self.is_read
        if self._has_joined:
            return False
        if not self._alone or commit_ms - self._alone[-1] >= APART_MS:
            self._alone = (*self._alone, commit_ms)[-ALONE:]
        self._settle()
        if self.is_read and not before:
            self._begin(now_ms)
        return self.is_read != before

    def give_up(self) -> None:
        """Drop a reader without a membership whose commits have stopped."""
        self.gone_ms = self._alone[-1] if self._alone else self.gone_ms
        self._alone, self.came_ms = (), 0
        self._settle()

    def _settle(self) -> None:
        self.is_read = self.has_members or len(self._alone) == ALONE

    def _begin(self, now_ms: int) -> None:
        """Watch the commits of a reader that has come, and not what was set before."""
        self.came_ms = now_ms
        for pair in self.pairs.values():
            pair.history.begin(now_ms)

    @property
    def reader(self) -> Reader:
        # A single commit without a member is a reset, a second one may be a reader that begins.
        gone_ms = self._alone[-1] if len(self._alone) > 1 else self.gone_ms
        return Reader(is_there=self.is_read, came_ms=self.came_ms, gone_ms=gone_ms)
