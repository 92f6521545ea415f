"""The door to runs that send dead letters again: plan, start, stop, resume and list.

A plan is computed from the current letters, shown, and started exactly as shown or not at all.
Workers send the letters; this module writes rows and creates the retry topic.
"""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from connectors import database_time, dead_letters, models, registry, selectors
from connectors.changes import By, Event, tell
from connectors.database import CONNECT
from connectors.dead_letters import Cluster, Place
from connectors.models import RunState
from connectors.redrive_plans import OtherGroup, RedrivePlan, plan_in, stored
from connectors.refusals import Conflict, NotFound, Refused, Unfit
from connectors.runtime import letters
from connectors.runtime.letters import Choice, Destination, Unsent
from connectors.runtime.masking import masked
from connectors.runtime.redrive import size_of
from connectors.runtime.retry_topic import name_for
from connectors.sdk.records import TopicPartition
from gateway.access.operations import Kind, Operation
from gateway.kafka.connection import Deadline
from gateway.kafka.values import NewTopic, Record, Span

# What a plan counts while the user waits. The run sends the other letters of its range as well.
MAX_LOOKED: Final = 50_000
PLAN_S: Final = 3.0
# Limit for letters that are named individually.
MAX_PICKED: Final = 500
# How many runs of a connector are kept.
MAX_KEPT: Final = 20
RETRY_CONFIGS: Final = {
    # Records keep their times, so retention would delete old ones before they are read.
    "retention.ms": "-1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request: which letters to send, and where to. Spans without an end go to the end."""

    destination: Destination = Destination.RETRY
    spans: tuple[Span, ...] = ()
    picked: frozenset[tuple[int, int]] = frozenset()
    exception: str = ""
    stage: str = ""
    # The id of a cause.
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """The state of one run."""

    id: int
    name: str
    destination: Destination
    state: str
    # Letters that the plan counted; more are sent if it did not count all.
    chosen: int
    is_counted: bool
    looked: int
    to_look: int
    sent: int
    sent_bytes: int
    unsent: Mapping[Unsent, int]
    reason: str
    actor: str
    topics: tuple[str, ...]
    began_at: datetime
    changed_at: datetime

    @property
    def is_running(self) -> bool:
        return self.state == RunState.RUNNING

    @property
    def can_resume(self) -> bool:
        return self.state in {RunState.STOPPED, RunState.FAILED}

    @property
    def percent(self) -> int:
        if self.state == RunState.DONE or not self.to_look:
            return 100
        # Offsets without a record are not looked at.
        return min(99, 100 * self.looked // self.to_look)


@dataclass(slots=True, kw_only=True)
class _Tally:
    """The counts of a plan so far, and the last offset read in each partition."""

    ends: dict[int, int]
    looked: int = 0
    chosen: int = 0
    bytes: int = 0
    targets: dict[str, int] = field(default_factory=dict)
    unsent: dict[Unsent, int] = field(default_factory=dict)
    cause_text: str = ""


def plan(by: By, cluster: str, name: str, asked: Asked, *, wire: Cluster) -> RedrivePlan:
    """Return what would be sent, without changes. Raises NotFound, Unfit, Refused."""
    row = selectors.row_of(cluster, name)
    place = dead_letters.place_of(row)
    dead_letters.require_read(by, cluster, place.topic)
    plugin = registry.find(row.plugin)
    if _is_retry(asked) and plugin is not None and registry.is_job(plugin):
        raise Unfit(
            f"{name} reads its topics with its own engine, and so has no retry topic: send letters"
            " to their origin"
        )
    if len(asked.picked) > MAX_PICKED:
        raise Unfit(
            f"{len(asked.picked)} letters are named; at most {MAX_PICKED} fit: name a range"
        )
    bounds = dead_letters.bounds_of(wire, place.topic)
    if not bounds:
        raise Unfit(f"topic {place.topic} does not exist yet: no record has failed so far")
    spans = list(_spans(asked, bounds))
    choice = Choice(
        spans=tuple(spans),
        picked=asked.picked,
        exception=asked.exception,
        stage=asked.stage,
        cause=asked.cause,
    )
    tally = _count(place, choice, asked.destination, wire)
    uncounted = sum((span.end or 0) - tally.ends[span.partition] for span in spans)
    if uncounted and _is_retry(asked):
        tally.targets.setdefault(name_for(name), 0)
    targets = [place.topic, *tally.targets, name_for(name)]
    made = RedrivePlan(
        id=uuid.uuid4().hex,
        cluster=cluster,
        name=name,
        generation=row.generation,
        dead_topic=place.topic,
        destination=asked.destination,
        choice=choice,
        to=place.to,
        topic_ids=wire.topic_ids(targets if _is_retry(asked) else targets[:-1]),
        chosen=tally.chosen,
        chosen_bytes=tally.bytes,
        looked=tally.looked,
        uncounted=uncounted,
        cause_text=masked(tally.cause_text, dead_letters.secrets_of(row)),
        caution=_caution(by, row, is_retry=_is_retry(asked)),
        targets=tally.targets,
        unsent=tally.unsent,
    )
    return made if _is_retry(asked) else _with_groups(by, made, wire)


def start(by: By, plan: RedrivePlan, *, wire: Cluster) -> RunInfo:
    """Start a run as planned. Raises NotFound, Refused, Conflict, Unfit."""
    row = selectors.row_of(plan.cluster, plan.name)
    _require(by, plan)
    done = row.redrives.filter(plan_id=plan.id).first()
    if done is not None:
        # The same plan was started before.
        return _info(done, plan.name)
    if not plan.is_startable:
        raise Unfit("the plan has no letter that could be sent: choose others")
    _require_unmoved(by, row, plan, wire)
    mark: dict[str, int] = {}
    if plan.destination is Destination.RETRY:
        plan, mark = _with_retry_topic(plan, wire)
    with transaction.atomic(using=CONNECT):
        locked = models.Connector.objects.select_for_update().get(pk=row.pk)
        if locked.redrives.filter(state=RunState.RUNNING).exists():
            raise Conflict(
                f"another run sends dead letters of {plan.name} already: wait for it, or stop it"
            )
        made = models.Redrive.objects.create(
            connector=locked,
            plan_id=plan.id,
            destination=plan.destination.value,
            plan=stored(plan),
            chosen=plan.chosen,
            positions={str(at): offset for at, offset in plan.begins.items()},
            mark=mark,
            actor=by.caller.principal[: models.ACTOR_CHARS],
        )
        made.refresh_from_db()
        tell(Event.REDRIVE_STARTED, by=by, connector=locked, after=_told(made, plan))
        old = locked.redrives.order_by("-pk").values_list("pk", flat=True)[MAX_KEPT:]
        locked.redrives.filter(pk__in=list(old)).delete()
    return _info(made, plan.name)


def stop(by: By, cluster: str, name: str, number: int) -> RunInfo:
    """Stop a run; the batch in flight still arrives."""
    row = _run_row(cluster, name, number)
    _require(by, plan_in(row.plan), is_sending=False)
    with transaction.atomic(using=CONNECT):
        locked = models.Redrive.objects.select_for_update().get(pk=row.pk)
        if locked.state == RunState.RUNNING:
            locked.state, locked.reason = RunState.STOPPED, "a user stopped it"
            locked.save(update_fields=["state", "reason"])
            told = {"run": str(number), "sent": str(locked.sent)}
            tell(Event.REDRIVE_STOPPED, by=by, connector=locked.connector, after=told)
    return _info(locked, name)


def resume(by: By, cluster: str, name: str, number: int) -> RunInfo:
    """Resume a run that was stopped or has failed."""
    row = _run_row(cluster, name, number)
    _require(by, plan_in(row.plan))
    with transaction.atomic(using=CONNECT):
        models.Connector.objects.select_for_update().get(pk=row.connector_id)
        locked = models.Redrive.objects.select_for_update().get(pk=row.pk)
        if locked.state == RunState.DONE:
            raise Unfit(f"run {number} is done: plan a new one")
        if locked.state != RunState.RUNNING:
            if locked.leased_until is not None and locked.leased_until > database_time.now():
                # Its batch in flight may not have arrived yet, and would be sent twice.
                raise Conflict(f"the worker of run {number} is still ending: try again in a second")
            others = models.Redrive.objects.filter(connector=locked.connector_id)
            if others.filter(state=RunState.RUNNING).exists():
                raise Conflict("another run sends dead letters of this connector: wait, or stop it")
            rows = models.Redrive.objects.filter(pk=row.pk)
            rows.update(
                state=RunState.RUNNING,
                reason="",
                # The user who resumes it has seen what may arrive twice.
                is_in_doubt=False,
                failures=0,
                due_at=None,
                leased_until=None,
                queued_at=None,
                epoch=F("epoch") + 1,
                changed_at=Now(),
            )
            told = {"run": str(number), "sent": str(locked.sent)}
            tell(Event.REDRIVE_RESUMED, by=by, connector=locked.connector, after=told)
        locked.refresh_from_db()
    return _info(locked, name)


def runs(cluster: str, name: str) -> list[RunInfo]:
    """Return the runs of a connector, newest first."""
    rows = selectors.row_of(cluster, name).redrives.order_by("-pk")[:MAX_KEPT]
    return [_info(row, name) for row in rows]


def run(cluster: str, name: str, number: int) -> RunInfo:
    return _info(_run_row(cluster, name, number), name)


def missing_right(by: By, plan: RedrivePlan, *, is_sending: bool = True) -> str:
    """Return the missing right for a run; empty if none is missing."""
    wanted = [(Operation.ALTER_CONNECTORS, Kind.CONNECTOR, plan.name)]
    if is_sending:
        wanted.append((Operation.READ_PAYLOADS, Kind.TOPIC, plan.dead_topic))
        wanted += [(Operation.PRODUCE, Kind.TOPIC, topic) for topic in sorted(plan.targets)]
        if plan.makes_topic:
            wanted.append((Operation.CREATE_TOPICS, Kind.TOPIC, name_for(plan.name)))
    for operation, kind, name in wanted:
        decision = by.caller.decide(operation, kind, plan.cluster, name)
        if not decision.is_allowed:
            return decision.reason
    return ""


def _is_retry(asked: Asked) -> bool:
    return asked.destination is Destination.RETRY


def _spans(asked: Asked, bounds: Mapping[int, tuple[int, int]]) -> Iterator[Span]:
    """Yield the requested spans, limited to what each partition holds."""
    picked: dict[int, list[int]] = {}
    for partition, offset in asked.picked:
        picked.setdefault(partition, []).append(offset)
    wanted = {span.partition: span for span in asked.spans}
    for partition in {*wanted, *picked} - bounds.keys():
        raise Unfit(f"the dead letter topic has no partition {partition} with a leader")
    for partition, (first, end) in sorted(bounds.items()):
        if (wanted and partition not in wanted) or (picked and partition not in picked):
            continue
        span = wanted.get(partition, Span(partition=partition, start=first))
        start, until = max(first, span.start), min(end, end if span.end is None else span.end)
        if offsets := picked.get(partition):
            start, until = max(start, min(offsets)), min(until, max(offsets) + 1)
        if start < until:
            yield Span(partition=partition, start=start, end=until)


def _count(place: Place, choice: Choice, destination: Destination, wire: Cluster) -> _Tally:
    """Read letters as the run would, for as long as the user waits."""
    tally = _Tally(ends={span.partition: span.start for span in choice.spans})
    partitions, deadline = wire.topics(), Deadline(PLAN_S)
    with closing(wire.read(place.topic, choice.spans)) as batches:
        for records in batches:
            for record in records:
                _look(tally, record, place, choice, destination, partitions)
                if tally.looked >= MAX_LOOKED:
                    return tally
            if deadline.is_over():
                return tally
    tally.ends = {span.partition: span.end or 0 for span in choice.spans}
    return tally


def _look(
    tally: _Tally,
    record: Record,
    place: Place,
    choice: Choice,
    destination: Destination,
    partitions: Mapping[str, int],
) -> None:
    tally.looked += 1
    tally.ends[record.partition] = record.offset + 1
    letter = letters.letter_of(record)
    if not choice.has(letter):
        return
    if choice.cause and not tally.cause_text:
        tally.cause_text = letter.shared_cause.text
    made = letters.again(letter, place.to, destination, run="", partitions=partitions)
    if isinstance(made, Unsent):
        tally.unsent[made] = tally.unsent.get(made, 0) + 1
        return
    tally.chosen += 1
    tally.bytes += size_of(made.record)
    tally.targets[made.topic] = tally.targets.get(made.topic, 0) + 1


def _caution(by: By, row: models.Connector, *, is_retry: bool) -> str:
    """Return why the connector does not read letters that are sent now, or may refuse them again.

    Empty if it reads them.
    """
    status = selectors.status(row.cluster, row.name, reader=by.caller.rights)
    failed = sum(task.state == models.State.FAILED for task in status.tasks)
    waits = (
        "the letters wait in its retry topic until then"
        if is_retry
        else "other readers of the topic get the letters at once"
    )
    if row.target != models.Target.STARTED:
        return f"{row.name} is {row.target.lower()}, and reads nothing until it is resumed: {waits}"
    if failed or status.state == models.State.FAILED:
        which = f"{failed} of {len(status.tasks)} tasks" if failed else "the connector"
        return (
            f"{which} of {row.name} failed, and {'do' if failed > 1 else 'does'} nothing until a"
            f" restart: {waits}. Correct the cause and restart it, or the letters fail again"
        )
    losing = [task.losing for task in status.tasks if task.losing is not None]
    if losing:
        lost, read = sum(one.lost for one in losing), sum(one.read for one in losing)
        return (
            f"{row.name} still loses records, {lost:,} of the last {read:,}: correct the cause"
            " first, since a letter that fails again becomes a dead letter again"
        )
    return ""


def _with_groups(by: By, plan: RedrivePlan, wire: Cluster) -> RedrivePlan:
    """Add the other groups that read the destination topics."""
    found = wire.readers(sorted(plan.targets))
    own = selectors.group_of(plan.name)
    places = sorted({place for reader in found.values() for place in reader.committed})
    ends = {place: end for place, (_, end) in wire.bounds(places).items()}
    groups, hidden = [], 0
    for name, reader in sorted(found.items()):
        if name == own:
            continue
        if not by.caller.decide(Operation.VIEW, Kind.GROUP, plan.cluster, name).is_allowed:
            hidden += 1
            continue
        lag = sum(
            max(0, ends.get(place, offset) - offset) for place, offset in reader.committed.items()
        )
        groups.append(OtherGroup(name=name, lag=lag, members=reader.members))
    return replace(plan, groups=tuple(groups), hidden_groups=hidden)


def _require(by: By, plan: RedrivePlan, *, is_sending: bool = True) -> None:
    reason = missing_right(by, plan, is_sending=is_sending)
    if reason:
        raise Refused(reason)


def _require_unmoved(by: By, row: models.Connector, plan: RedrivePlan, wire: Cluster) -> None:
    """Raise Conflict if the facts behind a plan have changed."""
    if row.generation != plan.generation:
        raise Conflict(f"{plan.name} was changed or restarted since the plan was made: plan again")
    there = wire.topic_ids(sorted({plan.dead_topic, *plan.topic_ids, *plan.targets}))
    for topic, known in sorted(plan.topic_ids.items()):
        if there.get(topic) != known:
            raise Conflict(f"topic {topic} was deleted since the plan was made: plan again")
    if plan.makes_topic and name_for(plan.name) in there:
        raise Conflict(f"topic {name_for(plan.name)} was created since the plan: plan again")
    if plan.destination is Destination.ORIGIN:
        now, shown = _with_groups(by, plan, wire), {group.name for group in plan.groups}
        new = [group.name for group in now.groups if group.name not in shown]
        if new or now.hidden_groups > plan.hidden_groups:
            said = f"group {new[0]} reads" if new else "another group that you may not see reads"
            raise Conflict(f"{said} a destination topic, and was not in the plan: plan again")


def _with_retry_topic(plan: RedrivePlan, wire: Cluster) -> tuple[RedrivePlan, dict[str, int]]:
    """Create the retry topic if missing; return the plan with its id, and its ends."""
    topic = name_for(plan.name)
    if plan.makes_topic:
        wire.create(NewTopic(name=topic, partitions=1, configs=RETRY_CONFIGS))
    known = wire.topic_ids([topic])
    count = wire.topics().get(topic, 1)
    places = [TopicPartition(topic=topic, partition=number) for number in range(count)]
    ends = {str(place.partition): end for place, (_, end) in wire.bounds(places).items()}
    if topic not in known or len(ends) < count:
        raise Conflict(f"topic {topic} has no leader yet: start the plan again in a second")
    return replace(plan, topic_ids={**plan.topic_ids, **known}), ends


def _run_row(cluster: str, name: str, number: int) -> models.Redrive:
    found = selectors.row_of(cluster, name).redrives.filter(pk=number).first()
    if found is None:
        raise NotFound(f"Connector {name} has no run {number} that sends dead letters again")
    return found


def _told(row: models.Redrive, plan: RedrivePlan) -> dict[str, str]:
    """Return the audit entry of a run."""
    spans = (f"{span.partition}: {span.start} to {span.end}" for span in plan.choice.spans)
    others = [group.name for group in plan.groups]
    told = {
        "run": str(row.pk),
        "from": plan.dead_topic,
        "to": ", ".join(sorted(plan.targets)),
        "letters": f"at least {plan.chosen}" if plan.uncounted else str(plan.chosen),
        "offsets": ", ".join(spans),
        "exception": plan.choice.exception,
        "stage": plan.choice.stage,
        "cause": plan.cause_text or plan.choice.cause,
        "seen again by": ", ".join(others),
    }
    return {key: text for key, text in told.items() if text}


def _info(row: models.Redrive, name: str) -> RunInfo:
    plan = plan_in(row.plan)
    return RunInfo(
        id=row.pk,
        name=name,
        destination=plan.destination,
        state=row.state,
        chosen=row.chosen,
        is_counted=not plan.uncounted,
        looked=row.looked,
        to_look=plan.looked + plan.uncounted,
        sent=row.sent,
        sent_bytes=row.sent_bytes,
        unsent={Unsent(reason): count for reason, count in row.unsent.items()},
        reason=row.reason,
        actor=row.actor,
        topics=tuple(sorted(plan.targets)),
        began_at=row.began_at,
        changed_at=row.changed_at,
    )
