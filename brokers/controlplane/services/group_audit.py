"""Audits changes of groups, which are calls to brokers and outside of any database transaction.

So one entry is written before a change begins, and another one with its outcome. If the process
ends in between, only the first one exists, and says what may have been done.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from brokers.cluster.origins import Origin, Via
from brokers.controlplane import models
from brokers.controlplane.database import transactional
from brokers.controlplane.services import audit, refusals
from brokers.controlplane.services.audit import ACCEPTED, BEGUN, Draft

SUBJECT: Final = "group"


class GroupChangeKind(StrEnum):
    RESET_OFFSETS = "reset offsets"
    DELETE_OFFSETS = "delete offsets"
    DELETE_GROUP = "delete group"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """A user's change of a group in the console, with values before and after."""

    kind: GroupChangeKind
    group: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    origin: Origin


class BegunSince(Exception):
    """A change of the group was begun after the plan of this one was made."""

    def __init__(self, number: int) -> None:
        super().__init__(f"entry {number} of the audit is a later change of the group")
        self.number = number


def note_begun(
    *, cluster_id: str, change: GroupChange, planned_at_ms: int | None = None, now_ms: int
) -> int:
    """Write that a change begins; return the number of the entry. Database errors propagate.

    The group must not be changed before this has returned. A plan that is older than the newest
    change of its group is refused by BegunSince, so that each is executed at most once.
    """
    return _write(
        cluster_id=cluster_id,
        draft=_draft(change, BEGUN, ""),
        planned_at_ms=planned_at_ms,
        now_ms=now_ms,
    )


def note_outcome(
    *, cluster_id: str, change: GroupChange, error: str | None, message: str, now_ms: int
) -> int:
    """Write the outcome of a change that was begun: done, or Kafka's name of the error."""
    draft = _draft(change, error or ACCEPTED, message)
    return _write(cluster_id=cluster_id, draft=draft, now_ms=now_ms)


def note_refused(
    *, cluster_id: str, change: GroupChange, error: str, message: str, now_ms: int
) -> None:
    """Write a change that was refused before it was begun; repetitions are counted."""
    drafts = [_draft(change, error, message)]
    refusals.note_drafts(cluster_id=cluster_id, drafts=drafts, now_ms=now_ms)


def _draft(change: GroupChange, outcome: str, message: str) -> Draft:
    return Draft(
        origin=change.origin,
        via=Via.BROWSER,
        kind=change.kind,
        subject=SUBJECT,
        name=change.group,
        outcome=outcome,
        message=message,
        before=change.before,
        after=change.after,
    )


@transactional
def _write(*, cluster_id: str, draft: Draft, planned_at_ms: int | None = None, now_ms: int) -> int:
    # Locked, so that of two that begin at the same time the second sees the first.
    cluster = models.Cluster.objects.select_for_update().get(cluster_id=cluster_id)
    if planned_at_ms is not None:
        _check_newest(cluster, draft, planned_at_ms)
    [number] = audit.append(cluster, [draft], version=cluster.version, now_ms=now_ms)
    return number


def _check_newest(cluster: models.Cluster, draft: Draft, planned_at_ms: int) -> None:
    begun = cluster.audit.filter(name=audit.name_of(draft), subject=SUBJECT, outcome=BEGUN)
    newest = begun.order_by("-number").first()
    if newest is not None and newest.made_at_ms >= planned_at_ms:
        raise BegunSince(newest.number)
