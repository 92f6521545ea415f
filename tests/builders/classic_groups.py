"""Groups at work for tests: a desk that applies outcomes, as a shard does, and requests for it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from brokers.coordination.groups.changes import GroupBecame
from brokers.coordination.groups.classic import ClassicGroup
from brokers.coordination.groups.classic_expiry import expire, loaded
from brokers.coordination.groups.classic_join import Joining, join, member_id_of
from brokers.coordination.groups.classic_leave import leave
from brokers.coordination.groups.classic_records import restored
from brokers.coordination.groups.classic_sync import heartbeat, sync
from brokers.coordination.groups.record_messages import GroupMetadataValue
from brokers.coordination.groups.records import GroupKey, decode_key, value_of
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.values import Who
from brokers.coordination.shard import (
    CancelTimer,
    Outcome,
    Parked,
    Record,
    SetTimer,
    Ticket,
    TimerKey,
)
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.heartbeat import HeartbeatRequest
from brokers.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from brokers.protocol.messages.leave_group import MemberIdentity
from brokers.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

WHO = Who("reader", "/127.0.0.1")
GROUP = "g"


CODES = {int(code): code for code in ErrorCode}


def code_of(answer: Any) -> ErrorCode:
    return CODES[answer.error_code]


@dataclass
class ClassicDesk:
    """One classic group, its timers, and the answers by ticket."""

    settings: GroupSettings = field(default_factory=GroupSettings)
    group: ClassicGroup | None = None
    now_ms: int = 1_000
    timers: dict[TimerKey, int] = field(default_factory=dict)
    answers: dict[Ticket, Any] = field(default_factory=dict)
    parked: set[Ticket] = field(default_factory=set)
    written: list[ClassicGroup] = field(default_factory=list)
    last: Ticket = 0
    ids: int = 0

    @property
    def there(self) -> ClassicGroup:
        assert self.group is not None
        return self.group

    def take(self, outcome: Outcome[Any], ticket: Ticket = 0) -> None:
        """Does with an outcome what the runtime and a shard do."""
        for record in outcome.records:
            assert decode_key(record.key) == GroupKey(GROUP)
            value = value_of(Record(record.key, record.value), GroupMetadataValue)
            assert value is not None
            self.written.append(restored(GROUP, value))
        for soft in outcome.soft:
            assert isinstance(soft, GroupBecame)
            assert soft.group is None or isinstance(soft.group, ClassicGroup)
            self.group = soft.group
        for timer in outcome.timers:
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = self.now_ms + timer.after_ms
            else:
                assert isinstance(timer, CancelTimer)
                self.timers.pop(timer.key, None)
        if ticket:
            if isinstance(outcome.response, Parked):
                self.parked.add(ticket)
            else:
                assert outcome.response is not None, "somebody asked"
                self.answers[ticket] = outcome.response
        for reply in outcome.replies:
            assert reply.ticket in self.parked, f"{reply} goes to somebody who does not wait"
            self.parked.remove(reply.ticket)
            self.answers[reply.ticket] = reply.answer

    def ticket(self) -> Ticket:
        self.last += 1
        return self.last

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        ways: Iterable[tuple[str, bytes]] = (("range", b"m"),),
        version: int = 9,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
    ) -> Ticket:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in ways],
        )
        ticket = self.ticket()
        joining = Joining(
            request=request,
            version=version,
            who=WHO,
            ticket=ticket,
            new_id=lambda: self._new_id(request),
        )
        outcome = join(self.group, joining, settings=self.settings, now_ms=self.now_ms)
        self.take(outcome, ticket)
        return ticket

    def _new_id(self, request: JoinGroupRequest) -> str:
        self.ids += 1
        return member_id_of(request, WHO, str(self.ids))

    def enter(self, **wishes: Any) -> tuple[str, Ticket]:
        """Joins as a dynamic newcomer does: for its id first, then with it."""
        member_id = self.answers[self.join(**wishes)].member_id
        return member_id, self.join(member_id, **wishes)

    def sync(
        self,
        member_id: str,
        generation: int | None = None,
        assignments: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
    ) -> Ticket:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self._generation(generation),
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=known, assignment=assignment)
                for known, assignment in (assignments or {}).items()
            ],
        )
        ticket = self.ticket()
        outcome = sync(
            self.group,
            request,
            ticket=ticket,
            settings=self.settings,
            now_ms=self.now_ms,
        )
        self.take(outcome, ticket)
        return ticket

    def _generation(self, generation: int | None) -> int:
        if generation is not None:
            return generation
        return 0 if self.group is None else self.group.generation

    def heartbeat(
        self, member_id: str, generation: int | None = None, instance: str | None = None
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self._generation(generation),
            member_id=member_id,
            group_instance_id=instance,
        )
        ticket = self.ticket()
        self.take(heartbeat(self.group, request), ticket)
        return code_of(self.answers[ticket])

    def leave(self, *members: tuple[str, str | None]) -> list[ErrorCode]:
        identities = [MemberIdentity(member_id=m, group_instance_id=i) for m, i in members]
        ticket = self.ticket()
        outcome = leave(
            self.group,
            identities,
            settings=self.settings,
            now_ms=self.now_ms,
        )
        self.take(outcome, ticket)
        return [code_of(member) for member in self.answers[ticket].members]

    def fire(self, kind: str, member_id: str = "") -> None:
        """Lets a timer fire, even one that is not set any more."""
        key = TimerKey(kind, GROUP, member_id)
        self.timers.pop(key, None)
        outcome = expire(self.group, key, settings=self.settings, now_ms=self.now_ms)
        self.take(outcome)

    def pass_time(self, ms: int) -> None:
        """Moves the clock, and lets all timers fire that are due, in their order."""
        until_ms = self.now_ms + ms
        while due := [(when, key) for key, when in self.timers.items() if when <= until_ms]:
            when, key = min(due, key=lambda pair: pair[0])
            self.now_ms = max(self.now_ms, when)
            self.fire(key.kind, key.part)
        self.now_ms = until_ms

    def load(self, group: ClassicGroup) -> None:
        self.group = group
        self.take(loaded(group, settings=self.settings, now_ms=self.now_ms))

    def error(self, ticket: Ticket) -> ErrorCode:
        return code_of(self.answers[ticket])

    def stable(self, *, members: int = 2, **wishes: Any) -> list[str]:
        """Brings a new group of dynamic members to Stable; the first one leads."""
        entered = [self.enter(**wishes)[0] for _ in range(members)]
        self.finish_rebalance()
        return entered

    def finish_rebalance(self) -> None:
        """Lets the time to join be over, and all members sync."""
        while self.there.state.value == "PreparingRebalance":
            due = self.timers[TimerKey("join", GROUP)]
            self.pass_time(due - self.now_ms)
        assignments = {known: f"for {known}".encode() for known in self.there.members}
        leader = self.there.leader
        for known in [known for known in self.there.members if known != leader]:
            self.sync(known)
        if leader is not None:
            self.sync(leader, assignments=assignments)
