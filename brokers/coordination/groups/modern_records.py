"""Converts changes of consumer groups to records and back.

Knows which key and value hold which change, but not the effects of a change. Partitions are written
in order, so that the same change has the same bytes.
"""

from collections.abc import Mapping
from typing import Final

from brokers.coordination.groups.modern import ClassicSide, Given, MemberState, ResolvedRegex
from brokers.coordination.groups.modern_changes import (
    Change,
    GroupEpoch,
    MemberSaid,
    MemberStands,
    MemberTarget,
    OldMetadata,
    RegexResolved,
    Said,
    Stand,
    TargetEpoch,
)
from brokers.coordination.groups.record_messages import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    TargetTopicPartitions,
)
from brokers.coordination.groups.records import (
    ConsumerGroupKey,
    CurrentMemberKey,
    GroupIdKey,
    MemberKey,
    PairKey,
    PartitionMetadataKey,
    RegexKey,
    TargetKey,
    TargetMemberKey,
    record_of,
    tombstone,
    value_of,
)
from brokers.coordination.groups.values import TopicPartitions, Who
from brokers.coordination.shard import Record
from brokers.protocol.schema import Message

CHANGES: Final = (
    GroupEpoch,
    OldMetadata,
    MemberSaid,
    TargetEpoch,
    MemberTarget,
    MemberStands,
    RegexResolved,
)


def write(group_id: str, change: Change) -> Record:
    """Return the record of a change, which carries the change itself for its replay here."""
    key, value = _parts(group_id, change)
    if value is None:
        return Record(tombstone(key).key, None, change)
    return record_of(key, value, change)


def change_of(key: GroupIdKey | PairKey, record: Record) -> Change | None:
    """Return the change of a record; None under a key that is not a consumer group's."""
    if isinstance(record.decoded, CHANGES):
        return record.decoded
    match key:
        case CurrentMemberKey() | TargetMemberKey() | MemberKey():
            return _member_change_of(key, record)
        case ConsumerGroupKey():
            group = value_of(record, ConsumerGroupMetadataValue)
            return GroupEpoch(group.epoch, group.metadata_hash) if group else GroupEpoch(None)
        case TargetKey():
            made = value_of(record, ConsumerGroupTargetAssignmentMetadataValue)
            if made is None:
                return TargetEpoch(None)
            return TargetEpoch(made.assignment_epoch, made.assignment_ms)
        case RegexKey():
            regex = value_of(record, ConsumerGroupRegularExpressionValue)
            return RegexResolved(key.regex, None if regex is None else _read_regex(regex))
        case PartitionMetadataKey():
            return OldMetadata(is_there=record.value is not None)
        case _:
            return None


def _member_change_of(
    key: CurrentMemberKey | TargetMemberKey | MemberKey, record: Record
) -> Change:
    match key:
        case CurrentMemberKey():
            stands = value_of(record, ConsumerGroupCurrentMemberAssignmentValue)
            return MemberStands(key.member_id, None if stands is None else _read_stand(stands))
        case TargetMemberKey():
            target = value_of(record, ConsumerGroupTargetAssignmentMemberValue)
            return MemberTarget(key.member_id, None if target is None else _read_target(target))
        case MemberKey():
            said = value_of(record, ConsumerGroupMemberMetadataValue)
            return MemberSaid(key.member_id, None if said is None else _read_said(said))


def _parts(group_id: str, change: Change) -> tuple[GroupIdKey | PairKey, Message | None]:
    match change:
        case MemberStands(member_id, stand):
            return CurrentMemberKey(group_id, member_id), None if stand is None else _stand_value(
                stand
            )
        case MemberTarget(member_id, target):
            value = None if target is None else _target_value(target)
            return TargetMemberKey(group_id, member_id), value
        case MemberSaid(member_id, said):
            return MemberKey(group_id, member_id), None if said is None else _said_value(said)
        case GroupEpoch(epoch, metadata_hash):
            return ConsumerGroupKey(group_id), None if epoch is None else (
                ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
            )
        case TargetEpoch(epoch, made_ms):
            return TargetKey(group_id), None if epoch is None else (
                ConsumerGroupTargetAssignmentMetadataValue(
                    assignment_epoch=epoch, assignment_ms=made_ms
                )
            )
        case RegexResolved(regex, resolved):
            return RegexKey(group_id, regex), None if resolved is None else _regex_value(resolved)
        case OldMetadata(is_there):
            assert not is_there, "the old description of topics is only deleted"
            return PartitionMetadataKey(group_id), None


def _stand_value(stand: Stand) -> Message:
    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=stand.epoch,
        previous_member_epoch=stand.previous_epoch,
        state=int(stand.state),
        assigned_partitions=_given_value(stand.assigned),
        partitions_pending_revocation=_given_value(stand.revoking),
    )


def _given_value(given: Given) -> list[CurrentTopicPartitions]:
    return [
        CurrentTopicPartitions(
            topic_id=topic_id,
            partitions=sorted(numbers),
            assignment_epochs=[numbers[number] for number in sorted(numbers)],
        )
        for topic_id, numbers in sorted(given.items())
        if numbers
    ]


def _read_stand(value: ConsumerGroupCurrentMemberAssignmentValue) -> Stand:
    epoch = value.member_epoch
    return Stand(
        epoch=epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_read_given(value.assigned_partitions, epoch),
        revoking=_read_given(value.partitions_pending_revocation, epoch),
    )


def _read_given(topics: list[CurrentTopicPartitions], member_epoch: int) -> Given:
    """Read partitions with their epochs; older brokers wrote none, so use the member's own.

    The same if there are more or fewer epochs than partitions. A member that is away has no epoch
    of its own: its kept partitions get the oldest one.
    """
    given: dict[bytes, Mapping[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            given[topic.topic_id] = dict.fromkeys(topic.partitions, max(member_epoch, 0))
        else:
            given[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return given


def _target_value(target: TopicPartitions) -> Message:
    return ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TargetTopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
            for topic_id, numbers in sorted(target.items())
            if numbers
        ]
    )


def _read_target(value: ConsumerGroupTargetAssignmentMemberValue) -> TopicPartitions:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def _said_value(said: Said) -> Message:
    classic = said.classic
    return ConsumerGroupMemberMetadataValue(
        instance_id=said.instance_id,
        rack_id=said.rack_id,
        client_id=said.who.client_id,
        client_host=said.who.host,
        subscribed_topic_names=list(said.names),
        subscribed_topic_regex=said.regex,
        rebalance_timeout_ms=said.rebalance_timeout_ms,
        server_assignor=said.assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in classic.protocols
            ],
        ),
    )


def _read_said(value: ConsumerGroupMemberMetadataValue) -> Said:
    classic = value.classic_member_metadata
    return Said(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        who=Who(value.client_id, value.client_host),
        names=tuple(sorted(set(value.subscribed_topic_names))),
        regex=value.subscribed_topic_regex or "",
        assignor=value.server_assignor or None,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        classic=None
        if classic is None
        else ClassicSide(
            session_timeout_ms=classic.session_timeout_ms,
            protocols=tuple(
                (each.name, bytes(each.metadata)) for each in classic.supported_protocols
            ),
        ),
    )


def _regex_value(resolved: ResolvedRegex) -> Message:
    return ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics),
        version=resolved.version,
        timestamp_ms=resolved.resolved_ms,
    )


def _read_regex(value: ConsumerGroupRegularExpressionValue) -> ResolvedRegex:
    return ResolvedRegex(frozenset(value.topics), value.version, value.timestamp_ms)
