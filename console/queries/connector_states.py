"""Words the state of connectors, one for all tasks of each, with its cause, and of their groups.

A connector that loses records, or retries, runs for Kafka Connect; here it needs attention. What to
do about the group of a connector, the connector says.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from connectors import selectors
from connectors.runtime.condition import Losing, Lost, Retrying
from connectors.selectors import Status, TaskStatus
from console import durations
from console.queries.lag import Mark
from console.queries.links import link
from gateway.access.grants import Rights
from gateway.access.operations import Kind, Operation
from gateway.kafka import shown_names

FAILED: Final = "FAILED"
PARTLY: Final = "PARTLY"
LOSING: Final = "LOSING"
LOSING_SOME: Final = "LOSING_SOME"
RETRYING: Final = "RETRYING"
UNASSIGNED: Final = "UNASSIGNED"
RUNNING: Final = "RUNNING"
# A single failed attempt is normal: servers restart, and transactions conflict.
MIN_TRIES: Final = 2
# Of a stack trace: enough for its first line to name the error.
TRACE_CHARS: Final = 300
SOME: Final = "Some of the records that it reads are not written."
# By state: the CSS class, the word and its meaning, in the order of the list.
STATES: Final[Mapping[str, Mark]] = MappingProxyType(
    {
        FAILED: Mark(state="bad", word="Failed", meaning="It does nothing until it is restarted."),
        PARTLY: Mark(
            state="bad", word="Partly failed", meaning="Some of its tasks have failed; others run."
        ),
        LOSING: Mark(
            state="bad",
            word="Losing records",
            meaning="Most of the records that it reads are not written.",
        ),
        LOSING_SOME: Mark(state="warn", word="Losing records", meaning=SOME),
        RETRYING: Mark(
            state="warn", word="Retrying", meaning="It continues once an attempt succeeds."
        ),
        UNASSIGNED: Mark(
            state="warn", word="Waiting", meaning="No worker has taken it yet, or all are busy."
        ),
        "RESTARTING": Mark(state="warn", word="Restarting", meaning="Its tasks start again."),
        RUNNING: Mark(
            state="ok", word="Running", meaning="Its tasks run, or have their turn soon."
        ),
        "PAUSED": Mark(
            state="stale", word="Paused", meaning="Its tasks stay assigned and process no records."
        ),
        "STOPPED": Mark(
            state="stale", word="Stopped", meaning="It has no tasks; offsets can be changed."
        ),
    }
)
# States of connectors that do not do their work.
IN_TROUBLE: Final = (FAILED, PARTLY, LOSING, LOSING_SOME, RETRYING)
# States that a user has asked for.
REQUESTED: Final = ("PAUSED", "STOPPED")
ORDER: Final = {state: place for place, state in enumerate(STATES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A connector that needs attention, with its cause."""

    name: str
    state: str
    mark: Mark
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The connector of a group, as far as the user may see it."""

    name: str  # for display
    mark: Mark
    # What keeps it from its work; empty if nothing does.
    cause: str
    link: str
    # It has a need of its own, or was paused or stopped by a user. One that waits for a worker has
    # none, and only its lag says that this is too long.
    explains_lag: bool


def troubles(cluster: str, reader: Rights) -> list[Trouble]:
    """Return all connectors that need attention, the worst first, for a user with some rights."""
    names = selectors.in_trouble(cluster, tries=MIN_TRIES)
    statuses = selectors.statuses(cluster, reader=reader, among=names) if names else []
    found = [
        Trouble(name=status.name, state=state, mark=STATES[state], cause=cause_of(status))
        for status in statuses
        if (state := state_of(status)) in IN_TROUBLE
    ]
    return sorted(found, key=lambda trouble: (ORDER[trouble.state], trouble.name))


def owners_of(cluster: str, groups: Iterable[str], rights: Rights) -> Mapping[str, Owner]:
    """Return the connectors of those groups that have one, by group."""
    names = rights.names(Operation.VIEW, cluster=cluster, kind=Kind.CONNECTOR)
    found = selectors.connectors_of_groups(cluster, groups, reader=rights)
    return {
        group: _owner(cluster, status) for group, status in found.items() if status.name in names
    }


def not_of_connectors(cluster: str, groups: Iterable[str]) -> list[str]:
    """Return the groups that belong to no connector, also to none that a user may not see."""
    listed = list(groups)
    owned = selectors.connectors_of_groups(cluster, listed, reader=Rights())
    return [group for group in listed if group not in owned]


def state_of(status: Status) -> str:
    """Return one word for a connector and its tasks together."""
    failed = sum(task.state == FAILED for task in status.tasks)
    if status.state == FAILED or (failed and failed == len(status.tasks)):
        return FAILED
    if failed:
        return PARTLY
    if status.state != RUNNING:
        return status.state
    if (losing := losing_of(status)) is not None:
        return LOSING if losing.is_most else LOSING_SOME
    if retrying_of(status) is not None:
        return RETRYING
    waiting = [task.state for task in status.tasks if task.state != RUNNING]
    return min(waiting, key=lambda state: ORDER[state]) if waiting else RUNNING


def task_state(task: TaskStatus) -> str:
    """Return one word for a task."""
    if task.state == FAILED:
        return FAILED
    if task.losing is not None and task.state in {RUNNING, UNASSIGNED}:
        return LOSING if task.losing.is_most else LOSING_SOME
    return RETRYING if is_retrying(task) else task.state


def is_retrying(task: TaskStatus) -> bool:
    """Return whether a task keeps retrying, now or in its next turn."""
    return task.retrying is not None and task.retrying.tries >= MIN_TRIES


def retrying_of(status: Status) -> Retrying | None:
    """Return the failures of the task that has failed for longest."""
    found = [task.retrying for task in status.tasks if task.retrying and is_retrying(task)]
    return min(found, key=lambda one: one.since_ms, default=None)


def losing_of(status: Status) -> Losing | None:
    """Return what all tasks of a connector lose together."""
    found = [task.losing for task in status.tasks if task.losing is not None]
    if not found:
        return None
    counts: Counter[tuple[str, str]] = Counter()
    for cause in (cause for one in found for cause in one.causes):
        counts[cause.text, cause.advice] += cause.count
    return Losing(
        since_ms=min(one.since_ms for one in found),
        last_ms=max(one.last_ms for one in found),
        # What tasks read that lose nothing counts too.
        read=sum(task.read_lately for task in status.tasks),
        lost=sum(one.lost for one in found),
        lost_since=sum(one.lost_since for one in found),
        dead_since=sum(one.dead_since for one in found),
        causes=tuple(
            Lost(text=text, advice=advice, count=count)
            for (text, advice), count in counts.most_common()
        ),
    )


def cause_of(status: Status) -> str:
    """Return one line about what keeps a connector from its work; empty if nothing does."""
    state = state_of(status)
    if state in (LOSING, LOSING_SOME) and (losing := losing_of(status)) is not None:
        return loss_words(losing)
    if state == RETRYING and (retrying := retrying_of(status)) is not None:
        return f"{retry_words(retrying, time.time())}: {cut(retrying.reason)}"
    return _first_line(status)


def loss_words(losing: Losing) -> str:
    """Return how many records are lost, and for the most common cause what to do."""
    told = f"{losing.lost:,} of the last {losing.read:,} records were not written"
    if losing.dropped_since:
        told += f"; {losing.dropped_since:,} of {losing.lost_since:,} lost so far are kept nowhere"
    first = next(iter(losing.causes), None)
    if first is None:
        return told
    advice = f": {first.advice}" if first.advice else ""
    return f"{told}. Most common cause: {cut(first.text)}{advice}"


def retry_words(retrying: Retrying, now_s: float) -> str:
    """Return for how long a task has failed, and when it tries again."""
    since_s = max(0.0, now_s - retrying.since_ms / 1000)
    next_s = retrying.next_ms / 1000 - now_s
    when = f"the next in {durations.span(next_s)}" if next_s > 0 else "the next is under way"
    return f"{retrying.tries:,} attempts failed in {durations.span(since_s)}, {when}"


def cut(text: str) -> str:
    """Cut a long text between two words and append an ellipsis."""
    if len(text) <= TRACE_CHARS:
        return text
    whole, _, _ = text[:TRACE_CHARS].rpartition(" ")
    return f"{whole or text[: TRACE_CHARS - 1]}…"


def causes_of(statuses: Iterable[Status]) -> dict[str, str]:
    """Return one line for each connector; an empty one if it does its work."""
    return {status.name: cause_of(status) for status in statuses}


def _owner(cluster: str, status: Status) -> Owner:
    state = state_of(status)
    return Owner(
        name=shown_names.shown(status.name),
        mark=STATES[state],
        cause=cause_of(status),
        link=link("connector", cluster, status.name),
        explains_lag=state in IN_TROUBLE or state in REQUESTED,
    )


def _first_line(status: Status) -> str:
    """Return the first line of the error of the connector, or of its first failed task."""
    traces = (status.trace, *(task.trace for task in status.tasks))
    first = next((trace for trace in traces if trace.strip()), "")
    lines = first.strip().splitlines()
    return cut(lines[0]) if lines else ""
