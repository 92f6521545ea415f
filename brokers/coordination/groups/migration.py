"""Changes the protocol of a group while it is used: from the classic one to KIP-848, and back.

Pure: takes a group and returns an outcome that includes the caller's own change. A member never has
more partitions after the change than before, so no partition gets a second owner by it. Knows no
requests.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from brokers.cluster.image import ClusterImage
from brokers.coordination.groups.classic import (
    CONSUMER_TYPE,
    ClassicGroup,
    ClassicMember,
    Way,
    counted,
    join_refused,
    select_protocol,
    sync_refused,
)
from brokers.coordination.groups.classic_expiry import timers_of
from brokers.coordination.groups.classic_steps import Draft
from brokers.coordination.groups.mixed_states import Obstacle
from brokers.coordination.groups.modern import (
    FIRST_EPOCH,
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
    Given,
    MemberState,
)
from brokers.coordination.groups.modern_changes import (
    Change,
    GroupEpoch,
    MemberSaid,
    MemberStands,
    MemberTarget,
    OldMetadata,
    RegexResolved,
    TargetEpoch,
    said_by,
    stand_of,
)
from brokers.coordination.groups.modern_desk import SESSION, Place, Step, cancelled
from brokers.coordination.groups.records import GroupKey, tombstone
from brokers.coordination.groups.settings import MAX_MEMBERS, GroupSettings
from brokers.coordination.groups.states import ClassicState
from brokers.coordination.groups.subscription import (
    NamedPartitions,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    version_of,
)
from brokers.coordination.groups.target import metadata_hash
from brokers.coordination.groups.values import TopicPartitions, Who
from brokers.coordination.shard import Answer, CancelTimer, Outcome, Reply, SetTimer, TimerKey
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.join_group import JoinGroupResponse

# The limit of the records that make a group classic: a little less than one batch holds by default.
# If they were refused for their size, the member that triggers it could not leave.
_MOST_BYTES: Final = 1_000_000
_RECORD_BYTES: Final = 40  # of a record beside its key and value, at most
# The hash of a group whose members lack some partitions: any topic changes it.
_NO_TOPICS: Final = 0


def upgraded(group: ClassicGroup, place: Place) -> tuple[ConsumerGroup, Outcome[Any]]:
    """Return the consumer protocol's group that replaces a classic one with members.

    KafkaError if it cannot. Members keep their generation as their epoch; the next join bumps the
    group's, by which they learn that they have to join again. A join that replaces a static member
    does so only if there is something left to assign.
    """
    subscriptions = _checked(group, place.settings)
    epoch = max(group.generation, FIRST_EPOCH)
    held, taken = _held_by(group, subscriptions)
    members = [
        _as_modern(
            member, subscriptions[member.member_id], epoch, _given(names, epoch, place.image)
        )
        for member, names in zip(group.members.values(), held, strict=True)
    ]
    names = {name for member in members for name in member.names}
    targets = [_partitions_of(member.assigned) for member in members]
    step = Step(ConsumerGroup(id=group.group_id), place)
    step.seat(zip(members, targets, strict=True))
    step.note(*map(said_by, members))
    is_whole = group.state is ClassicState.STABLE and _is_all_read(taken, names, place.image)
    step.add(GroupEpoch(epoch, metadata_hash(names, place.image) if is_whole else _NO_TOPICS))
    step.note(*map(MemberTarget, group.members, targets))
    step.add(TargetEpoch(epoch))
    step.note(*map(stand_of, members))
    return replace(step.group, is_metadata_stale=not is_whole), Outcome(
        records=(tombstone(GroupKey(group.group_id)), *step.records),
        timers=(
            *map(CancelTimer, timers_of(group)),
            *(
                SetTimer(TimerKey(SESSION, group.group_id, known), member.session_timeout_ms)
                for known, member in group.members.items()
            ),
        ),
        replies=tuple(_sent_back(group)),
    )


def _checked(group: ClassicGroup, settings: GroupSettings) -> Mapping[str, Subscription]:
    """Return the subscription of each member; KafkaError if the group cannot change."""
    if not settings.migration_policy.allows_upgrade:
        raise _kept(group, Obstacle.DISABLED)
    if group.protocol_type != CONSUMER_TYPE:
        raise _kept(group, Obstacle.OTHER_TYPE)
    if len(group.members) > min(settings.consumer_max_size, MAX_MEMBERS):
        raise _kept(group, Obstacle.TOO_LARGE)
    found: dict[str, Subscription] = {}
    # Most members have the same subscription.
    read: dict[bytes, Subscription | None] = {}
    for member_id, member in group.members.items():
        # Before the first generation no protocol is selected, and members that joined since the
        # last one may not list its protocol; all metadata of one member have the same content.
        metadata = member.metadata(group.protocol) or member.ways[0].metadata
        if metadata not in read:
            read[metadata] = decode_subscription(metadata)
        subscription = read[metadata]
        if subscription is None:
            raise _kept(group, Obstacle.MALFORMED)
        found[member_id] = subscription
    return found


def _kept(group: ClassicGroup, obstacle: Obstacle) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {obstacle.value}",
    )


def _held_by(
    group: ClassicGroup, subscriptions: Mapping[str, Subscription]
) -> tuple[list[dict[str, set[int]]], dict[str, set[int]]]:
    """Return the partitions that each member may be reading, in order of members, and their union.

    Each partition has at most one owner.

    The source is the assignment. An interrupted rebalance has cleared assignments while members of
    cooperative assignors go on reading: then their own claims count, the latest one first.
    """
    held: dict[str, dict[str, set[int]]] = {member_id: {} for member_id in group.members}
    taken: dict[str, set[int]] = {}
    claims: list[str] = []
    for member_id in group.members:
        data = group.assignments.get(member_id, b"")
        if not data:
            claims.append(member_id)
            continue
        assignment = decode_assignment(data)
        if assignment is None:
            raise _kept(group, Obstacle.MALFORMED)
        if assignment.user_data:
            raise _kept(group, Obstacle.CUSTOM)
        _hold(held[member_id], assignment.partitions, taken)
    if group.state is not ClassicState.STABLE:
        for member_id in sorted(claims, key=lambda known: -subscriptions[known].generation):
            _hold(held[member_id], subscriptions[member_id].owned, taken)
    return list(held.values()), taken


def _hold(held: dict[str, set[int]], wanted: NamedPartitions, taken: dict[str, set[int]]) -> None:
    for topic, numbers in wanted.items():
        others = taken.setdefault(topic, set())
        if free := numbers - others:
            held[topic] = set(free)
            others |= free


def _is_all_read(taken: Mapping[str, set[int]], names: Iterable[str], image: ClusterImage) -> bool:
    """Tell whether each partition of these topics has an owner."""
    return all(
        taken.get(name, set()).issuperset(range(len(image.topics[name].partitions)))
        for name in names
        if name in image.topics
    )


def _given(held: Mapping[str, Iterable[int]], epoch: int, image: ClusterImage) -> Given:
    topics = image.topics
    return {
        topics[name].id: dict.fromkeys(sorted(numbers), epoch)
        for name, numbers in held.items()
        if name in topics
    }


def _partitions_of(given: Given) -> TopicPartitions:
    return {topic_id: frozenset(numbers) for topic_id, numbers in given.items()}


def _as_modern(
    member: ClassicMember, subscription: Subscription, epoch: int, assigned: Given
) -> ConsumerMember:
    return ConsumerMember(
        id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        who=Who(member.client_id, member.client_host),
        names=tuple(sorted(subscription.topics)),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicSide(
            session_timeout_ms=member.session_timeout_ms,
            protocols=tuple((way.name, way.metadata) for way in member.ways),
        ),
        epoch=epoch,
        previous_epoch=epoch,
        state=MemberState.STABLE,
        assigned=assigned,
    )


def _sent_back(group: ClassicGroup) -> Iterator[Reply]:
    """Answer waiting members so that they join again, and get the coordinator's assignment."""
    error = ErrorCode.REBALANCE_IN_PROGRESS
    for member_id, waiting in group.joining.items():
        yield Reply(waiting.ticket, join_refused(error, member_id))
    for ticket in group.syncing.values():
        yield Reply(ticket, sync_refused(error))


def may_downgrade(left: Collection[ConsumerMember], settings: GroupSettings) -> bool:
    """Tell whether a group with these remaining members continues as a classic one."""
    sides = [member.classic for member in left if member.classic is not None]
    if not sides or len(sides) != len(left) or len(left) > settings.max_size:
        return False
    if not settings.migration_policy.allows_downgrade:
        return False
    # Joins ensure a shared protocol; members of a foreign record might have none.
    return bool(set.intersection(*({name for name, _ in side.protocols} for side in sides)))


def downgraded(
    step: Step,
    left: Collection[ConsumerMember],
    place: Place,
    now_ms: int,
    response: Answer | None,
    *,
    rebalances: bool,
) -> Outcome[Any] | None:
    """Return the outcome of a step after which all members `left` use the classic protocol.

    None if it is more than one batch holds: the group stays as it is, and its step goes on.
    """
    before = step.group
    classic = _as_classic(before, left, place.image, now_ms)
    if isinstance(response, JoinGroupResponse):
        # The protocol by which its member has to sync: the group's, no longer the member's own.
        response.protocol_name = classic.protocol
    gone = [place.write(before.id, change) for change in _tombstones(before)]
    draft = Draft(classic, settings=place.settings, now_ms=now_ms)
    draft.save()
    for member_id in classic.members:
        draft.restart_session(member_id)
    if rebalances:
        draft.prepare()
    outcome = draft.outcome(response)
    records = (*step.records, *gone, *outcome.records)
    size = sum(_RECORD_BYTES + len(record.key) + len(record.value or b"") for record in records)
    if size > _MOST_BYTES:
        return None
    over = (timer for member_id in before.members for timer in cancelled(before.id, member_id))
    return replace(outcome, records=records, timers=(*step.timers, *over, *outcome.timers))


def _tombstones(group: ConsumerGroup) -> Iterator[Change]:
    """Return records that delete a group with its members, in the order that replay requires."""
    members = tuple(group.members)
    for member_id in members:
        yield MemberStands(member_id, None)
    for member_id in dict.fromkeys((*members, *group.targets)):
        yield MemberTarget(member_id, None)
    yield TargetEpoch(None)
    for member_id in members:
        yield MemberSaid(member_id, None)
    for regex in group.regexes:
        yield RegexResolved(regex, None)
    if group.has_old_metadata:
        yield OldMetadata(is_there=False)
    yield GroupEpoch(None)


def _as_classic(
    group: ConsumerGroup, left: Collection[ConsumerMember], image: ClusterImage, now_ms: int
) -> ClassicGroup:
    members = {member.id: _as_classic_member(member) for member in left}
    classic = ClassicGroup(
        group_id=group.id,
        state=ClassicState.STABLE,
        since_ms=now_ms,
        generation=group.epoch,
        protocol_type=CONSUMER_TYPE,
        leader=next(iter(members)),
        members=members,
        static_ids={
            member.instance_id: member.id for member in left if member.instance_id is not None
        },
        supporters=counted({}, gone=(), come=members.values()),
    )
    protocol = select_protocol(classic)
    # Not their targets, as in Kafka: others may still have some of those partitions. A sync, and
    # the next change to the consumer protocol, assume that members read their assignments.
    assignments = {
        member.id: assignment_bytes(_reading(member), members[member.id].metadata(protocol), image)
        for member in left
    }
    return replace(classic, protocol=protocol, assignments=assignments)


def _reading(member: ConsumerMember) -> TopicPartitions:
    """Return what a member may be reading: its partitions, and those it has not revoked yet."""
    found: dict[bytes, frozenset[int]] = {}
    for given in (member.assigned, member.revoking):
        for topic_id, numbers in given.items():
            found[topic_id] = found.get(topic_id, frozenset()).union(numbers)
    return found


def _as_classic_member(member: ConsumerMember) -> ClassicMember:
    side = member.classic
    assert side is not None, f"member {member.id!r} does not speak the classic protocol"
    return ClassicMember(
        member_id=member.id,
        instance_id=member.instance_id,
        client_id=member.who.client_id,
        client_host=member.who.host,
        session_timeout_ms=side.session_timeout_ms,
        rebalance_timeout_ms=max(member.rebalance_timeout_ms, 0),
        ways=tuple(Way(name, metadata) for name, metadata in side.protocols),
    )


def assignment_bytes(
    partitions: Mapping[bytes, Iterable[int]], metadata: bytes, image: ClusterImage
) -> bytes:
    """Encode an assignment for a member, in the version of its subscription."""
    named = {
        name: frozenset(numbers)
        for topic_id, numbers in partitions.items()
        if (name := image.names.get(topic_id)) is not None
    }
    return encode_assignment(named, version_of(metadata))
