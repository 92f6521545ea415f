"""A shard of groups at a desk: operations run one by one, as in a runtime where all goes well."""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from brokers.cluster.image import ClusterImage
from brokers.coordination.groups.classic import ClassicGroup
from brokers.coordination.groups.classic_records import restored, written
from brokers.coordination.groups.modern import ConsumerGroup
from brokers.coordination.groups.record_messages import GroupMetadataValue
from brokers.coordination.groups.records import value_of
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.groups.states import ClassicState
from brokers.coordination.groups.values import Committed
from brokers.coordination.shard import (
    NOBODY,
    PARKED,
    CancelTimer,
    Job,
    Operation,
    Outcome,
    Record,
    SetTimer,
    TimerKey,
)
from brokers.protocol.errors import KafkaError
from tests.fakes.clock import ManualClock


@dataclass
class GroupDesk:
    """See the module. `records` is all that the shard's log would hold."""

    image: ClusterImage
    settings: GroupSettings = field(default_factory=GroupSettings)
    clock: ManualClock = field(default_factory=ManualClock)
    records: list[Record] = field(default_factory=list)
    timers: dict[TimerKey, int] = field(default_factory=dict)
    answers: dict[int, Any] = field(default_factory=dict)
    parked: set[int] = field(default_factory=set)
    jobs: list[Job[GroupShard]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ids = (f"id{number}" for number in count(1))
        self._tickets = count(NOBODY + 1)
        self.shard = self._shard()

    def _shard(self) -> GroupShard:
        return GroupShard(self.image, self.settings, lambda: next(self._ids))

    def ask(self, operation: Operation[GroupShard]) -> Any:
        """The answer, also if it is an error; PARKED for who has to wait."""
        ticket = next(self._tickets)
        self.do(operation, ticket)
        return PARKED if ticket in self.parked else self.answers[ticket]

    def do(self, operation: Operation[GroupShard], ticket: int = NOBODY) -> None:
        try:
            outcome = operation.run(self.shard, self.clock.now_ms(), ticket)
        except KafkaError as error:
            self.answers[ticket] = error
            return
        if outcome is None:
            assert operation.otherwise is not None
            self.do(operation.otherwise, ticket)
            return
        self.take(outcome, ticket)

    def take(self, outcome: Outcome[GroupShard], ticket: int = NOBODY) -> None:
        for record in outcome.records:
            self.shard.replay(record, self.clock.now_ms())
        self.records += outcome.records
        for soft in outcome.soft:
            self.shard.apply(soft)
        for timer in outcome.timers:
            if isinstance(timer, SetTimer):
                if timer.only_if_absent and timer.key in self.timers:
                    continue
                self.timers[timer.key] = self.clock.now_ms() + timer.after_ms
            else:
                assert isinstance(timer, CancelTimer)
                self.timers.pop(timer.key, None)
        if outcome.then is not None:
            self.do(outcome.then, ticket)
        elif outcome.response is PARKED:
            self.parked.add(ticket)
        elif ticket != NOBODY:
            self.answers[ticket] = outcome.response
        self.jobs += outcome.jobs
        for reply in outcome.replies:
            self.parked.remove(reply.ticket)
            self.answers[reply.ticket] = reply.answer

    def run_jobs(self) -> None:
        """Does the work that was asked for, and takes up what it found."""
        while self.jobs:
            job = self.jobs.pop()
            for _ in job.steps():
                pass
            self.do(job.done())

    def pass_time(self, milliseconds: int) -> None:
        """Lets time pass, and timers fire when they are due."""
        end = self.clock.now_ms() + milliseconds
        while self.timers and min(self.timers.values()) <= end:
            key = min(self.timers, key=lambda key: self.timers[key])
            self.clock.advance(max(0, self.timers.pop(key) - self.clock.now_ms()))
            self.do(self.shard.timer_fired(key))
        self.clock.advance(end - self.clock.now_ms())

    def change(self, image: ClusterImage) -> None:
        """The cluster changes."""
        before, self.image = self.image, image
        for operation in self.shard.image_changed(before, image, self.clock.now_ms()):
            if operation is not None:
                self.do(operation)

    def chores(self) -> None:
        for operation in tuple(self.shard.chores(self.clock.now_ms())):
            self.do(operation)

    def loaded(self) -> GroupShard:
        """Another shard, from the bytes of the log alone."""
        shard = self._shard()
        for record in self.records:
            shard.replay(Record(record.key, record.value), self.clock.now_ms())
        return shard

    def started(self) -> list[Outcome[GroupShard]]:
        """What the shard asks for once it is loaded."""
        return list(self.shard.loaded(self.clock.now_ms()))

    def check(self) -> None:
        """A shard that loads has what the live one would leave behind; rebalances are lost."""
        loaded = self.loaded()
        for group in self.shard.groups():
            if isinstance(group, ConsumerGroup):
                assert loaded.group(group.id) == group
            elif group.state in {ClassicState.EMPTY, ClassicState.STABLE} and group.generation:
                assert loaded.group(group.group_id) == as_written(group)
        known = {group_id_of(group) for group in self.shard.groups()}
        assert {group_id_of(group) for group in loaded.groups()} <= known
        assert offsets_of(loaded) == offsets_of(self.shard)


def group_id_of(group: ClassicGroup | ConsumerGroup) -> str:
    return group.id if isinstance(group, ConsumerGroup) else group.group_id


def offsets_of(shard: GroupShard) -> dict[str, dict[tuple[str, int], Committed]]:
    return {group_id: dict(shard.offsets.of(group_id)) for group_id in shard.offsets.groups()}


def as_written(group: ClassicGroup) -> ClassicGroup:
    """The group as its record would bring it back."""
    record = written(group)
    value = value_of(Record(record.key, record.value), GroupMetadataValue)
    assert value is not None
    return restored(group.group_id, value)
