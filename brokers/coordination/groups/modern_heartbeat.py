"""Handles the consumer protocol's heartbeat: joining, staying, and learning the assignment.

Pure: group, request, place and time in, an outcome out. If neither the member nor the group has
changed, `steady` answers and writes nothing; all else goes through `heartbeat`, whose rules come in
Kafka's order, since the order decides which error a client sees.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from brokers.coordination.groups.modern import (
    JOINS,
    NO_PARTITIONS,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    ResolvedRegex,
    topic_ids_of,
    topic_names_of,
)
from brokers.coordination.groups.modern_changes import (
    RegexResolved,
    TargetEpoch,
    said_by,
    stand_of,
)
from brokers.coordination.groups.modern_desk import (
    CLASSIC_JOIN,
    CLASSIC_SYNC,
    REBALANCE,
    SESSION,
    Place,
    Step,
)
from brokers.coordination.groups.modern_leave import (
    member_of_instance,
    no_group,
    unknown_member,
)
from brokers.coordination.groups.reconcile import (
    Aim,
    follows_subscription,
    is_within,
    reconcile,
)
from brokers.coordination.groups.regex import Resolution, compile_checked
from brokers.coordination.groups.settings import MAX_MEMBERS, MAX_REGEXES, GroupSettings
from brokers.coordination.groups.target import new_targets
from brokers.coordination.groups.values import TopicPartitions, Who
from brokers.coordination.shard import CancelTimer, Job, Outcome, SetTimer, TimerKey
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from brokers.protocol.messages.consumer_group_heartbeat import (
    TopicPartitions as WirePartitions,
)

# The least time between two matchings of a group's expressions, whatever clients do.
MIN_REFRESH_MS: Final = 10_000


def steady(
    group: ConsumerGroup | None,
    request: ConsumerGroupHeartbeatRequest,
    who: Who,
    place: Place,
    now_ms: int,
) -> Outcome[Any] | None:
    """Answer a settled member that reports no change; None for any other."""
    member = group.members.get(request.member_id) if group is not None else None
    if group is None or member is None:
        return None
    epoch = request.member_epoch
    is_at_rest = (
        epoch == member.epoch == group.assignment_epoch == group.epoch
        and member.state is MemberState.STABLE
        and member.classic is None
        and not group.is_metadata_stale
    )
    says_nothing = (
        request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.rack_id is None
        and request.rebalance_timeout_ms in {-1, member.rebalance_timeout_ms}
        and (request.instance_id is None or request.instance_id == member.instance_id)
        and who == member.who
    )
    if not is_at_rest or not says_nothing or _is_refresh_due(group, place, now_ms):
        return None
    settings = place.settings
    return Outcome(
        timers=(_session(group.id, member.id, place),),
        response=ConsumerGroupHeartbeatResponse(
            member_id=member.id,
            member_epoch=epoch,
            heartbeat_interval_ms=settings.consumer_heartbeat_interval_ms,
        ),
    )


def heartbeat(
    group: ConsumerGroup | None,
    request: ConsumerGroupHeartbeatRequest,
    who: Who,
    place: Place,
    now_ms: int,
) -> Outcome[Any]:
    """Handle any heartbeat except leaving. Raises KafkaError for a refused one."""
    if group is None and request.member_epoch != JOINS:
        raise no_group(request.group_id)
    step = Step(group or ConsumerGroup(id=request.group_id), place)
    _check_room(step.group, request.member_id, place)
    owned = owned_by(request)
    member = _subscribed(step, request, owned, place)
    told = _told(member, request, who)
    take_up(step, member, told, place, now_ms)
    assign_if_due(step, place, now_ms)
    reconciled = reconcile_member(step, step.group.members[told.id], owned, place)
    step.timers.append(_session(step.group.id, told.id, place))
    is_full = (
        request.rebalance_timeout_ms != -1
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
        and request.topic_partitions is not None
    )
    is_told = request.member_epoch == JOINS or is_full or reconciled.assigned != member.assigned
    response = ConsumerGroupHeartbeatResponse(
        member_id=reconciled.id,
        member_epoch=reconciled.epoch,
        heartbeat_interval_ms=place.settings.consumer_heartbeat_interval_ms,
        assignment=_assignment(reconciled) if is_told else None,
    )
    return step.outcome(group, response)


def take_up(
    step: Step, member: ConsumerMember, told: ConsumerMember, place: Place, now_ms: int
) -> bool:
    """Write a member's changed data; bump the group's epoch if that is needed.

    Returns whether the member has subscribed to something else.
    """
    is_new = member.id not in step.group.members
    has_new_regex = _take_words(step, member, told, is_new=is_new)
    has_changed = told.names != member.names or has_new_regex
    if member.classic != told.classic:
        step.timers += _times_over(step.group.id, told)
    if _is_refresh_due(step.group, place, now_ms):
        step.jobs.append(_refresh(step.group, place))
    if has_changed or step.group.is_metadata_stale:
        step.bump(is_needed=has_changed)
    return has_changed


def heard(group: object, request: ConsumerGroupHeartbeatRequest, place: Place) -> SetTimer | None:
    """Restart the session of a member whose heartbeat fails because of the disk; it is alive."""
    member = group.members.get(request.member_id) if isinstance(group, ConsumerGroup) else None
    if member is None or request.member_epoch not in {member.epoch, member.previous_epoch}:
        return None
    return None if member.is_away else _session(request.group_id, member.id, place)


def regexes_resolved(
    group: ConsumerGroup | None,
    found: dict[str, frozenset[str]],
    version: int,
    place: Place,
    now_ms: int,
) -> Outcome[Any]:
    """Apply a job's matches of the group's expressions; skip those without subscribers."""
    if group is None:
        return Outcome()
    step = Step(group, place)
    has_changed = False
    for regex, topics in found.items():
        if regex in group.regex_counts:
            old = group.regexes.get(regex)
            has_changed |= old is None or old.topics != topics
            step.add(RegexResolved(regex, ResolvedRegex(topics, version, now_ms)))
    if has_changed:
        step.bump(is_needed=True)
    return step.outcome(group, None)


def assign_if_due(step: Step, place: Place, now_ms: int) -> None:
    """Make new targets for the group's epoch, unless it has them or had some a moment ago.

    Members come in crowds: with a pause between assignments, a crowd costs a few of them.
    """
    group = step.group
    if is_assignment_due(group, place, now_ms):
        step.add(*new_targets(group, place.image), TargetEpoch(group.epoch, now_ms))


def is_assignment_due(group: ConsumerGroup, place: Place, now_ms: int) -> bool:
    """Tell whether the group's epoch has no assignment, and the pause since the last is over."""
    if group.epoch <= group.assignment_epoch:
        return False
    since_ms = now_ms - group.assignment_ms
    # A clock that was set back must not hold the group for long.
    return not (group.assignment_ms and 0 <= since_ms < place.settings.assignment_interval_ms)


def reconcile_member(
    step: Step, member: ConsumerMember, owned: TopicPartitions | None, place: Place
) -> ConsumerMember:
    """Move a member one step towards its target, and write its new position."""
    group = step.group
    subscribed = topic_ids_of(topic_names_of(member, group.regexes), place.image)
    if group.is_settled(member) and follows_subscription(member, subscribed):
        return member
    aim = Aim(
        epoch=group.assignment_epoch,
        target=group.targets.get(member.id, NO_PARTITIONS),
        subscribed=subscribed,
        owned=owned,
        owners=group.owners,
    )
    reconciled = reconcile(member, aim)
    if reconciled is member:
        return member
    step.add(stand_of(reconciled))
    if reconciled.classic is not None:
        return reconciled  # its deadlines are those of the other protocol
    timer = TimerKey(REBALANCE, group.id, member.id)
    if reconciled.state is MemberState.UNREVOKED_PARTITIONS:
        step.timers.append(SetTimer(timer, max(reconciled.rebalance_timeout_ms, 0)))
    else:
        step.timers.append(CancelTimer(timer))
    return reconciled


def owned_by(request: ConsumerGroupHeartbeatRequest) -> TopicPartitions | None:
    """Return the partitions that the member reports as its own; None if it reports none."""
    if request.topic_partitions is None:
        return None
    owned: dict[bytes, frozenset[int]] = {}
    for topic in request.topic_partitions:
        owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()).union(topic.partitions)
    return owned


def check_epoch(member: ConsumerMember, epoch: int, owned: TopicPartitions | None) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the epoch is the member's, or its last one.

    A member whose response was lost sends its last epoch; then it must not report partitions that
    were not assigned to it.
    """
    if epoch in {JOINS, member.epoch}:
        return
    if epoch > member.epoch:
        why = f"its epoch {epoch} is larger than {member.epoch}, which is the coordinator's"
    elif epoch != member.previous_epoch:
        why = f"its epoch {epoch} is neither {member.epoch} nor the one before"
    elif owned is None or not is_within(owned, member.assigned):
        why = (
            f"its epoch {epoch} is the one before {member.epoch}, and it may have more than it was"
        )
        why += " given"
    else:
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member {member.id!r} must give up all its partitions and join again: {why}",
    )


def _check_room(group: ConsumerGroup, member_id: str, place: Place) -> None:
    if is_full(group, member_id, place.settings):
        limit = _limit(place.settings)
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"group {group.id!r} has {len(group.members)} members, and {limit} are allowed",
        )


def is_full(group: ConsumerGroup, member_id: str, settings: GroupSettings) -> bool:
    """Tell whether there is no room for the member, unless it is one already."""
    return len(group.members) >= _limit(settings) and member_id not in group.members


def _limit(settings: GroupSettings) -> int:
    return min(settings.consumer_max_size, MAX_MEMBERS)


def _subscribed(
    step: Step,
    request: ConsumerGroupHeartbeatRequest,
    owned: TopicPartitions | None,
    place: Place,
) -> ConsumerMember:
    """Return the requesting member before the request; a new one if it joins."""
    group = step.group
    if request.instance_id is None:
        member_id = request.member_id or place.new_id()
        member = group.members.get(member_id)
        if member is None:
            if request.member_epoch != JOINS:
                raise unknown_member(group, member_id)
            return ConsumerMember(id=member_id)
    elif request.member_epoch == JOINS:
        return _joined_static(step, request.instance_id, request.member_id or place.new_id())
    else:
        member = member_of_instance(group, request.instance_id, request.member_id)
    check_epoch(member, request.member_epoch, owned)
    return member


def _joined_static(step: Step, instance_id: str, member_id: str) -> ConsumerMember:
    """Return a joining static member: new, or in place of the one with the instance id."""
    group = step.group
    known = group.instances.get(instance_id)
    if known is None:
        return group.members.get(member_id) or ConsumerMember(id=member_id, instance_id=instance_id)
    old = group.members[known]
    if old.classic is None and not old.is_away:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"static member {instance_id!r} is still in use by {known!r}",
        )
    return step.exchange(old, member_id)


def _told(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, who: Who
) -> ConsumerMember:
    """Return the member with the data of the request; null means no change."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        assignor=request.server_assignor or member.assignor,
        names=member.names if names is None else tuple(sorted(set(names))),
        regex=member.regex if regex is None else regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        who=who,
        classic=None,
    )


def _take_words(step: Step, member: ConsumerMember, told: ConsumerMember, *, is_new: bool) -> bool:
    """Write the member's data, if it has changed.

    Returns whether it has another expression that needs no matching first: then the group's epoch
    moves at once, else after the matching.
    """
    has_other_regex = told.regex != member.regex
    if has_other_regex and told.regex and told.regex not in step.group.regex_counts:
        compile_checked(told.regex)
        if len(step.group.regex_counts) >= MAX_REGEXES:
            raise KafkaError(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"group {step.group.id!r} has {MAX_REGEXES} regular expressions, the most allowed",
            )
    if is_new or told != member:
        step.add(said_by(told))
    if not has_other_regex:
        return False
    step.drop_regexes(member.regex)
    return not told.regex or told.regex in step.group.regexes


def _is_refresh_due(group: ConsumerGroup, place: Place, now_ms: int) -> bool:
    """Tell whether the group's expressions are to be matched again."""
    if not group.regex_counts:
        return False
    last_ms = max((regex.resolved_ms for regex in group.regexes.values()), default=0)
    since_ms = now_ms - last_ms
    if last_ms and 0 <= since_ms <= MIN_REFRESH_MS:
        return False
    return (
        len(group.regexes) < len(group.regex_counts)
        or since_ms >= place.settings.regex_refresh_interval_ms
        or place.topics_version > min(regex.version for regex in group.regexes.values())
    )


def _refresh(group: ConsumerGroup, place: Place) -> Job[Any]:
    image = place.image
    resolution = Resolution(tuple(group.regex_counts), image.topics)
    return Job(
        key=f"regexes of {group.id}",
        steps=resolution.steps,
        done=partial(place.resolved, group.id, resolution.found, image.version),
    )


def _times_over(group_id: str, told: ConsumerMember) -> Iterator[CancelTimer]:
    """Cancel the timers of the protocol that the member no longer uses."""
    kinds = (CLASSIC_JOIN, CLASSIC_SYNC) if told.classic is None else (REBALANCE,)
    return (CancelTimer(TimerKey(kind, group_id, told.id)) for kind in kinds)


def _session(group_id: str, member_id: str, place: Place) -> SetTimer:
    timeout_ms = place.settings.consumer_session_timeout_ms
    return SetTimer(TimerKey(SESSION, group_id, member_id), timeout_ms)


def _assignment(member: ConsumerMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            WirePartitions(topic_id=topic_id, partitions=sorted(given))
            for topic_id, given in sorted(member.assigned.items())
        ]
    )
