"""Clients of a group coordinator in a process of their own: crowds that join, and steady members.

Who is steady sends frames that were made beforehand, with a correlation id of their own each, and
an answer other than the expected one is a failure.

`python -m bench.group_clients` takes a job as JSON on its standard input and prints what it saw.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from bench.blaster import Link, framed, keep_busy
from bench.broker_targets import Target
from bench.group_scripts import (
    CORRELATION,
    CORRELATION_POSITION,
    VERSIONS,
    Membership,
    Pause,
    Script,
    classic_member,
    consumer_member,
    play,
    staying_member,
)
from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from brokers.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from brokers.protocol.messages.find_coordinator import FindCoordinatorRequest
from brokers.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from brokers.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from brokers.protocol.schema import Message

# Between two heartbeats of a member that waits for its share: a tenth of what brokers ask for, so
# that the broker is measured and not its clients' patience.
HEARTBEAT_SECONDS: Final = 0.5
# The same in a large group that is told of a rebalance by its heartbeats.
CALM_HEARTBEAT_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 0.1
PATIENCE_SECONDS: Final = 60.0
CONSUMER_INTERVAL_MS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """`kind`: commit, heartbeat, consumer_heartbeat; join, consumer_join, rejoin; idle."""

    host: str
    port: int
    pid: int | None
    kind: str
    topic: str
    members: int
    groups: int = 1
    name: str = "group"
    seconds: float = 0.0
    is_consumer: bool = False
    has_floor: bool = False  # whoever answers knows no groups and has no words


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Of the steady kinds requests and times; of the others how long which part took."""

    seconds: float
    cpu: float
    requests: int = 0
    p50_us: float = 0.0
    p99_us: float = 0.0
    asked_seconds: float = 0.0  # until the last member had said all that the group waits for
    settled_seconds: float = 0.0  # from the first member that was let go on to the last one's share


def done(job: Job) -> Seen:
    """Does the job in this process."""
    if not job.has_floor:
        play((job.host, job.port), [_find(job.name)])
    return KINDS[job.kind](job)


# -- steady members ------------------------------------------------------------------------------


def _steady(job: Job) -> Seen:
    """All members of all groups, one request of each in flight."""
    members = [] if job.has_floor else _members(job)
    links = [_link(job, number, members) for number in range(job.members)]
    target = _target(job)
    before = target.cpu_seconds()
    seen = keep_busy(links, job.seconds)
    return Seen(
        seconds=seen.seconds,
        cpu=target.cpu_seconds() - before,
        requests=seen.requests,
        p50_us=seen.p50_us,
        p99_us=seen.p99_us,
    )


def _members(job: Job) -> list[Membership]:
    members = [
        Membership(group=f"{job.name}-{number % job.groups}") for number in range(job.members)
    ]
    if job.kind == "consumer_heartbeat":
        _settle_consumers(job, members)
    else:
        play((job.host, job.port), [classic_member(member, job.topic) for member in members])
    return members


def _link(job: Job, number: int, members: list[Membership]) -> Link:
    address = (job.host, job.port)
    me = members[number] if members else Membership(group=job.name)
    request, response = STEADY[job.kind](job, me)
    key = request.KEY
    assert key is not None, "a request has the key of its API"
    version = VERSIONS[key]
    frame = framed(key, version, codec(type(request), version).encode(request))
    if job.has_floor:
        return Link(address, _numbered(frame))
    head = b"\0" * APIS[key].is_flexible(version)
    answer = b"".join([head, *codec(type(response), version).encode(response)])
    return Link(address, _numbered(frame), answer)


def _numbered(frame: bytearray) -> Iterator[bytearray]:
    """One frame for ever, with the next correlation id each time."""
    number = 0
    while True:
        number = number + 1 & 0x7FFF_FFFF
        CORRELATION.pack_into(frame, CORRELATION_POSITION, number)
        yield frame


def _commit(job: Job, me: Membership) -> tuple[Message, Message]:
    request = OffsetCommitRequest(
        group_id=me.group,
        generation_id_or_member_epoch=me.epoch,
        member_id=me.member_id,
        topics=[
            OffsetCommitRequestTopic(
                name=job.topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=1_234_567, committed_metadata=""
                    )
                ],
            )
        ],
    )
    response = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=job.topic, partitions=[OffsetCommitResponsePartition(partition_index=0)]
            )
        ]
    )
    return request, response


def _heartbeat(_job: Job, me: Membership) -> tuple[Message, Message]:
    request = HeartbeatRequest(group_id=me.group, generation_id=me.epoch, member_id=me.member_id)
    return request, HeartbeatResponse()


def _consumer_heartbeat(_job: Job, me: Membership) -> tuple[Message, Message]:
    request = ConsumerGroupHeartbeatRequest(
        group_id=me.group, member_id=me.member_id, member_epoch=me.epoch
    )
    response = ConsumerGroupHeartbeatResponse(
        member_id=me.member_id,
        member_epoch=me.epoch,
        heartbeat_interval_ms=CONSUMER_INTERVAL_MS,
    )
    return request, response


# -- crowds --------------------------------------------------------------------------------------


def _join(job: Job) -> Seen:
    """Members of one classic group, from the first join to the last share."""
    members = [Membership(group=job.name) for _ in range(job.members)]
    target, began = _target(job), time.monotonic()
    before = target.cpu_seconds()
    play((job.host, job.port), [classic_member(member, job.topic) for member in members])
    return _joined(members, began, target.cpu_seconds() - before)


def _rejoin(job: Job) -> Seen:
    """One more member comes to a classic group that is settled, so that all join again."""
    members = [Membership(group=job.name) for _ in range(job.members)]
    late = Membership(group=job.name)
    target = _target(job)
    marks: list[tuple[float, float]] = []

    def is_over() -> bool:
        return bool(late.settled_s) and len({member.epoch for member in (*members, late)}) == 1

    def come_late() -> Script:
        while not all(member.settled_s for member in members):
            yield Pause(LOOK_SECONDS)
        # Heartbeats of those who were let in together are spread over their time by then.
        yield Pause(CALM_HEARTBEAT_SECONDS)
        marks.append((time.monotonic(), target.cpu_seconds()))
        yield from classic_member(late, job.topic)

    stays = [
        staying_member(
            member,
            job.topic,
            every_s=CALM_HEARTBEAT_SECONDS * (0.5 + number / len(members)),
            is_over=is_over,
        )
        for number, member in enumerate(members)
    ]
    play((job.host, job.port), [*stays, come_late()])
    (began, before) = marks[0]
    return _joined([*members, late], began, target.cpu_seconds() - before)


def _joined(members: list[Membership], began: float, cpu: float) -> Seen:
    assert len({member.epoch for member in members}) == 1, "members are of several generations"
    asked = max(member.asked_s for member in members)
    first = min(member.joined_s for member in members)
    settled = max(member.settled_s for member in members)
    return Seen(
        seconds=settled - began,
        cpu=cpu,
        asked_seconds=max(0.0, asked - began),
        settled_seconds=settled - first,
    )


def _consumer_join(job: Job) -> Seen:
    """Members of one consumer group, until the broker calls it stable."""
    members = [Membership(group=job.name) for _ in range(job.members)]
    target, began = _target(job), time.monotonic()
    before = target.cpu_seconds()
    _settle_consumers(job, members)
    return Seen(seconds=time.monotonic() - began, cpu=target.cpu_seconds() - before)


def _settle_consumers(job: Job, members: list[Membership]) -> None:
    """Lets them join; each of them has all of its share when this returns."""
    stable: set[str] = set()
    groups = {member.group for member in members}

    def is_over() -> bool:
        return stable == groups

    def look() -> Script:
        while not is_over():
            yield Pause(LOOK_SECONDS)
            waiting = [group for group in groups - stable if _seems_settled(group, members)]
            if waiting:
                answer = yield ConsumerGroupDescribeRequest(group_ids=waiting)
                stable.update(
                    group.group_id for group in answer.groups if group.group_state == "Stable"
                )

    joins = [
        consumer_member(member, job.topic, every_s=HEARTBEAT_SECONDS, is_over=is_over)
        for member in members
    ]
    play((job.host, job.port), [*joins, look()], is_over=is_over)


def _seems_settled(group: str, members: list[Membership]) -> bool:
    """Whether those of a group are at one epoch; a description of the group costs more."""
    epochs = {member.epoch for member in members if member.group == group}
    return len(epochs) == 1 and 0 not in epochs


def _idle(job: Job) -> Seen:
    """Groups of one member each, which commits once and falls silent."""
    began, target = time.monotonic(), _target(job)
    before = target.cpu_seconds()

    def come(first: int) -> Script:
        for number in range(first, job.groups, job.members):
            me = Membership(group=f"{job.name}-{number}")
            if job.is_consumer:
                # Silent from the moment that it has its share.
                yield from consumer_member(me, job.topic, every_s=0, is_over=lambda: True)
            else:
                yield from classic_member(me, job.topic)
            answer = yield _commit(job, me)[0]
            codes = {each.error_code for topic in answer.topics for each in topic.partitions}
            assert codes == {0}, f"OffsetCommit was answered with {codes}"

    play((job.host, job.port), [come(number) for number in range(job.members)])
    return Seen(
        seconds=time.monotonic() - began, cpu=target.cpu_seconds() - before, requests=job.groups
    )


def _find(group: str) -> Script:
    """Asks for the coordinator until there is one: the first to ask has its topic made."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = yield FindCoordinatorRequest(coordinator_keys=[group])
        if answer.coordinators[0].error_code == 0:
            return
        assert time.monotonic() < deadline, f"no coordinator: {answer.coordinators[0]}"
        yield Pause(LOOK_SECONDS)


def _target(job: Job) -> Target:
    return Target(name="", host=job.host, port=job.port, pid=job.pid)


STEADY: Final[Mapping[str, Callable[[Job, Membership], tuple[Message, Message]]]] = {
    "commit": _commit,
    "heartbeat": _heartbeat,
    "consumer_heartbeat": _consumer_heartbeat,
}
KINDS: Final[Mapping[str, Callable[[Job], Seen]]] = {
    **dict.fromkeys(STEADY, _steady),
    "join": _join,
    "rejoin": _rejoin,
    "consumer_join": _consumer_join,
    "idle": _idle,
}


def main() -> None:
    job = Job(**json.load(sys.stdin))
    sys.stdout.write(json.dumps(asdict(done(job))))


if __name__ == "__main__":
    main()
