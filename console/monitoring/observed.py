"""Combines the brokers' feeds: partitions, topics, groups, commits and brokers.

Pure. A partition belongs to the broker that reported it last, and a group to its coordinator; a
removal by another broker is ignored. Numbers of partitions are stored in packed columns, since
there may be a hundred thousand partitions.
"""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from console.monitoring.groups import Group, Pair
from console.monitoring.rebalances import Rebalances

# Twice the size of the largest supported cluster; the rest is dropped, and the snapshot says that
# it was cut.
MAX_PARTITIONS: Final = 200_000
MAX_GROUPS: Final = 30_000
MAX_COMMITS: Final = 400_000
MAX_MEMBERS: Final = 100_000
# Groups that are gone and rebalanced lately, in case that they come back.
MAX_DEPARTED: Final = 1_000
# A broker reports 200 clients and the rest, and fewer APIs than this.
MAX_DETAIL_ROWS: Final = 300
# A broker's counters are noted every ten seconds, for a minute.
KEPT_MARKS: Final = 7

Row = Sequence[Any]


class Topic:
    """A topic: the places of its partitions in the columns, and sums over them."""

    __slots__ = ("bytes_in", "bytes_out", "name", "records", "size", "slots")

    def __init__(self, name: str) -> None:
        self.name = name
        self.slots: dict[int, int] = {}
        self.size = 0
        # Counters since the start of the collector; only their growth is meaningful.
        self.records = 0
        self.bytes_in = 0
        self.bytes_out = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A broker's counters at a moment; rows are replaced and never changed."""

    ms: int
    apis: Mapping[str, Row]
    clients: Mapping[str | None, Row]


@dataclass(slots=True, kw_only=True)
class BrokerView:
    """The latest report of one broker about itself."""

    id: int
    address: str = ""
    answered_ms: int = 0  # by the collector's clock
    failure: str = ""
    run: str = ""
    totals: Mapping[str, Any] = field(default_factory=dict)
    bucket_bounds_ms: Row = ()
    apis: dict[str, Row] = field(default_factory=dict)
    clients: dict[str | None, Row] = field(default_factory=dict)
    topic_bytes: dict[str, tuple[int, int]] = field(default_factory=dict)
    marks: deque[Mark] = field(default_factory=lambda: deque(maxlen=KEPT_MARKS))

    def mark(self, now_ms: int) -> None:
        """Save the present counters, so that those of the last minute can be computed."""
        self.marks.append(Mark(ms=now_ms, apis=dict(self.apis), clients=dict(self.clients)))


class Observed:
    """The combined state of all feeds. Not thread-safe."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.groups: dict[str, Group] = {}
        self.brokers: dict[int, BrokerView] = {}
        self.starts = array("q")
        self.ends = array("q")  # high watermarks, where readable records end
        self.sizes = array("q")
        self.owners = array("i")
        self.partitions = 0
        self.commits = 0
        self.members = 0
        self.is_cut = False
        # Names of changed topics and groups; the publisher empties the sets.
        self.touched_topics: set[str] = set()
        self.touched_groups: set[str] = set()
        # Topics and pairs whose offsets moved; the evaluation empties the sets.
        self.moved_topics: set[str] = set()
        self.moved_pairs: set[Pair] = set()
        # Groups whose members or commits have come or gone, and those that own unknown partitions.
        self.moved_members: set[str] = set()
        # Groups that have rebalanced lately.
        self.restless: set[str] = set()
        # A broker removes a group without offsets as soon as it is empty for a moment, so one that
        # rebalances again and again comes and goes: by name, the longest absent first.
        self._departed: dict[str, Rebalances] = {}
        # By topic, then by group.
        self.readers: dict[str, dict[str, Pair]] = {}
        # Places in the columns that were reused for another partition; the sampler empties it.
        self.taken_over: set[int] = set()
        self._free: list[int] = []
        self._now_ms = 0  # the time of the answer that is taken

    def take(self, broker_id: int, told: Mapping[str, Any], *, now_ms: int) -> None:
        """Apply one answer of a broker's feed."""
        view = self.brokers.setdefault(broker_id, BrokerView(id=broker_id))
        self._now_ms = now_ms
        view.answered_ms, view.failure = now_ms, ""
        view.totals = told.get("totals", {})
        view.bucket_bounds_ms = told.get("bucket_bounds_ms", ())
        if told["kind"] == "snapshot":
            self._take_snapshot(view, told)
        else:
            for step in told["steps"]:
                self._take_step(view, step)

    def fail(self, broker_id: int, failure: str) -> None:
        """Note that a broker did not answer; its earlier data stays."""
        self.brokers.setdefault(broker_id, BrokerView(id=broker_id)).failure = failure

    def forget_broker(self, broker_id: int) -> None:
        """Drop a broker that left the cluster, with the data that only it reported."""
        self.brokers.pop(broker_id, None)
        self._drop_partitions(broker_id, told=set())
        for group in [group for group in self.groups.values() if group.owner == broker_id]:
            self._drop_group(group)

    def places(self) -> Iterator[tuple[str, int, int]]:
        """Yield topic, partition and place in the columns of every partition."""
        for topic in self.topics.values():
            for index, slot in topic.slots.items():
                yield topic.name, index, slot

    def settle_owned(self) -> None:
        """Find the partitions that members own without a commit, in groups where they changed."""
        names, self.moved_members = self.moved_members, set()
        for name in names:
            group = self.groups.get(name)
            if group is not None and not self._settle(group):
                self.moved_members.add(name)

    def _settle(self, group: Group) -> bool:
        """Settle one group; return whether the topics that it owns are known."""
        owned: dict[str, set[int]] = {}
        for row in group.members.values():
            for topic, partitions in row[5]:
                owned.setdefault(topic, set()).update(partitions)
        if group.members and not owned:
            # It rebalances, or has nothing to own: what it has not committed stays so meanwhile.
            return True
        self.touched_groups.add(group.name)
        group.owned = sum(map(len, owned.values()))
        is_known = True
        for topic in owned.keys() | group.pairs.keys():
            slots = self.topics[topic].slots if topic in self.topics else {}
            partitions = owned.get(topic, set())
            is_known = is_known and partitions <= slots.keys()
            history = group.pairs[topic].history if topic in group.pairs else ()
            missing = [each for each in partitions if each in slots and each not in history]
            if not missing and topic not in group.pairs:
                continue
            pair = self._pair(group, topic)
            before = pair.uncommitted
            if missing or before:
                pair.uncommitted = {
                    each: before.get(each, self.ends[slots[each]]) for each in sorted(missing)
                }
                self.moved_pairs.add(pair)
                self._drop_if_empty(group, pair)
        return is_known

    # --- one broker's answer -------------------------------------------------------------------

    def _take_snapshot(self, view: BrokerView, told: Mapping[str, Any]) -> None:
        self._drop_partitions(view.id, {(row[0], row[1]) for row in told["rows"]})
        groups = {row[0] for row in told.get("groups", ())}
        commits = told.get("commits", ())
        groups.update(row[0] for row in commits)
        for group in [group for group in self.groups.values() if group.owner == view.id]:
            if group.name not in groups:
                self._drop_group(group)
        self._drop_commits(view.id, {(row[0], row[1], row[2]) for row in commits})
        for group in self.groups.values():
            if group.owner == view.id:
                self.members -= len(group.members)
                group.members = {}
                self.moved_members.add(group.name)
        if view.run != told.get("run", ""):
            # Counters of another run started at zero.
            view.topic_bytes = {}
            view.marks.clear()
            view.run = told.get("run", "")
        view.apis, view.clients = {}, {}
        self.is_cut = self.is_cut or bool(told.get("is_cut"))
        self._take_rows(view, told)

    def _take_step(self, view: BrokerView, step: Mapping[str, Any]) -> None:
        for topic, index in step.get("gone", ()):
            self._drop_partition(view.id, topic, index)
        for name, topic, index in step.get("commits_gone", ()):
            self._drop_commit(view.id, name, topic, index)
        for name in step.get("groups_gone", ()):
            gone = self.groups.get(name)
            if gone is not None and gone.owner == view.id:
                self._drop_group(gone)
        for name, member in step.get("gone_members", ()):
            found = self.groups.get(name)
            if found is not None and found.members.pop(member, None) is not None:
                self.members -= 1
                self.moved_members.add(name)
        for client in step.get("gone_clients", ()):
            view.clients.pop(client, None)
        for topic in step.get("gone_topics", ()):
            view.topic_bytes.pop(topic, None)
        self._take_rows(view, step)

    def _take_rows(self, view: BrokerView, told: Mapping[str, Any]) -> None:
        """Apply the rows of a feed; a broker of an older release sends fewer."""
        self._take_partitions(view.id, told["rows"])
        for row in told.get("groups", ()):
            group = self._group(row[0], view.id)
            if group is not None:
                if group.take(row, (view.id, view.run), self._now_ms):
                    self.moved_pairs.update(group.pairs.values())
                if not group.rebalances.is_quiet:
                    self.restless.add(group.name)
        for row in told.get("commits", ()):
            self._take_commit(view.id, row)
        for row in told.get("members", ()):
            self._take_member(view.id, row)
        for row in told.get("topics", ()):
            self._take_topic_bytes(view, row)
        take_bounded(view.apis, told.get("apis", ()))
        take_bounded(view.clients, told.get("clients", ()))

    def _take_partitions(self, broker_id: int, rows: Iterable[Row]) -> None:
        starts, ends, sizes = self.starts, self.ends, self.sizes
        for name, index, start, end, _log_end, size, *_more in rows:
            topic = self.topics.get(name)
            if topic is None:
                topic = self.topics[name] = Topic(name)
            self.touched_topics.add(name)
            slot = topic.slots.get(index)
            if slot is None:
                slot = self._new_slot()
                if slot is None:
                    continue
                topic.slots[index] = slot
                self.partitions += 1
                ends[slot] = end
                self.moved_topics.add(name)
            if ends[slot] != end or starts[slot] != start:
                self.moved_topics.add(name)
                topic.records += max(0, end - ends[slot])
            topic.size += size - sizes[slot]
            starts[slot], ends[slot], sizes[slot] = start, end, size
            self.owners[slot] = broker_id

    def _take_commit(self, broker_id: int, row: Row) -> None:
        group = self._group(row[0], broker_id)
        if group is None:
            return
        group.owner = broker_id
        pair = self._pair(group, row[1])
        is_known = row[2] in pair.history
        if self.commits >= MAX_COMMITS and not is_known:
            self.is_cut = True
            return
        if not group.has_members:
            is_forward = not is_known or row[3] > pair.history.committed(row[2])[0]
            if is_forward and group.take_commit(row[5], self._now_ms):
                self.moved_pairs.update(group.pairs.values())
        pair.history.commit(row[2], committed=row[3], commit_ms=row[5], is_reading=group.is_read)
        if pair.uncommitted:
            pair.uncommitted.pop(row[2], None)
        self.moved_pairs.add(pair)
        self.commits += not is_known

    def _take_member(self, broker_id: int, row: Row) -> None:
        group = self._group(row[0], broker_id)
        if group is None or (row[1] not in group.members and self.members >= MAX_MEMBERS):
            self.is_cut = True
            return
        self.members += row[1] not in group.members
        group.members[row[1]] = row
        self.moved_members.add(group.name)

    def _take_topic_bytes(self, view: BrokerView, row: Row) -> None:
        name, bytes_in, bytes_out = row[:3]
        before = view.topic_bytes.get(name)
        view.topic_bytes[name] = (bytes_in, bytes_out)
        topic = self.topics.get(name)
        if topic is not None and before is not None:
            topic.bytes_in += max(0, bytes_in - before[0])
            topic.bytes_out += max(0, bytes_out - before[1])

    def _group(self, name: str, broker_id: int) -> Group | None:
        group = self.groups.get(name)
        if group is None:
            if len(self.groups) >= MAX_GROUPS:
                self.is_cut = True
                return None
            group = self.groups[name] = Group(name, broker_id, self._now_ms)
            group.rebalances = self._departed.pop(name, group.rebalances)
        self.touched_groups.add(name)
        return group

    def _pair(self, group: Group, topic: str) -> Pair:
        pair = group.pairs.get(topic)
        if pair is None:
            pair = group.pairs[topic] = Pair(group.name, topic)
            self.readers.setdefault(topic, {})[group.name] = pair
        return pair

    def _new_slot(self) -> int | None:
        if self._free:
            slot = self._free.pop()
            self.taken_over.add(slot)
            return slot
        if len(self.ends) >= MAX_PARTITIONS:
            self.is_cut = True
            return None
        for column in (self.starts, self.ends, self.sizes):
            column.append(0)
        self.owners.append(0)
        return len(self.ends) - 1

    # --- what is gone --------------------------------------------------------------------------

    def _drop_partitions(self, broker_id: int, told: set[tuple[str, int]]) -> None:
        gone = [
            (name, index)
            for name, index, slot in self.places()
            if self.owners[slot] == broker_id and (name, index) not in told
        ]
        for name, index in gone:
            self._drop_partition(broker_id, name, index)

    def _drop_partition(self, broker_id: int, name: str, index: int) -> None:
        topic = self.topics.get(name)
        slot = None if topic is None else topic.slots.get(index)
        if topic is None or slot is None or self.owners[slot] != broker_id:
            return
        del topic.slots[index]
        self.touched_topics.add(name)
        topic.size -= self.sizes[slot]
        self.moved_topics.add(name)
        self.starts[slot] = self.ends[slot] = self.sizes[slot] = 0
        self._free.append(slot)
        self.partitions -= 1
        if not topic.slots:
            del self.topics[name]

    def _drop_commits(self, broker_id: int, told: set[tuple[str, str, int]]) -> None:
        gone = [
            (group.name, pair.topic, index)
            for group in self.groups.values()
            if group.owner == broker_id
            for pair in group.pairs.values()
            for index in pair.history.partitions()
            if (group.name, pair.topic, index) not in told
        ]
        for name, topic, index in gone:
            self._drop_commit(broker_id, name, topic, index)

    def _drop_commit(self, broker_id: int, name: str, topic: str, index: int) -> None:
        group = self.groups.get(name)
        if group is None or group.owner != broker_id or topic not in group.pairs:
            return
        self.touched_groups.add(name)
        pair = group.pairs[topic]
        before = len(pair.history)
        pair.history.forget(index)
        self.moved_pairs.add(pair)
        self.moved_members.add(name)
        self.commits -= before - len(pair.history)
        self._drop_if_empty(group, pair)

    def _drop_group(self, group: Group) -> None:
        self.commits -= sum(len(pair.history) for pair in group.pairs.values())
        self.members -= len(group.members)
        for topic in group.pairs:
            self._drop_reader(group.name, topic)
        del self.groups[group.name]
        self.touched_groups.add(group.name)
        if not group.rebalances.is_quiet:
            self._departed[group.name] = group.rebalances
            if len(self._departed) > MAX_DEPARTED:
                del self._departed[next(iter(self._departed))]

    def _drop_if_empty(self, group: Group, pair: Pair) -> None:
        if pair.is_empty:
            del group.pairs[pair.topic]
            self._drop_reader(group.name, pair.topic)

    def _drop_reader(self, group: str, topic: str) -> None:
        readers = self.readers[topic]
        self.moved_pairs.discard(readers.pop(group))
        if not readers:
            del self.readers[topic]


def take_bounded(kept: dict[Any, Row], rows: Iterable[Row]) -> None:
    """Keep rows by their first column, no more than a broker of this release sends."""
    for row in rows:
        if row[0] in kept or len(kept) < MAX_DETAIL_ROWS:
            kept[row[0]] = row
