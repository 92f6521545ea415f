"""Audits refused requests; a flood of them uses up neither its space nor the writer's time.

The first of its kind in a minute is written at once; its repetitions are counted in memory, and the
count is written with the next refusal that comes FLUSH_MS later. A process that ends loses the
unwritten counts, never an entry. Refusals with varying names or client ids get at most MAX_ENTRIES
entries an hour; after that they are counted by kind only.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from django.db import Error
from django.db.models import F

from brokers.cluster.origins import Origin
from brokers.cluster.proposals import Outcome, Proposal
from brokers.controlplane import models
from brokers.controlplane.database import transactional
from brokers.controlplane.logs import log
from brokers.controlplane.services import audit
from brokers.controlplane.services.audit import Draft
from brokers.protocol.errors import ErrorCode

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
# With the four summary kinds that is under 3,000 a day, and under 300,000 in the 90 days that
# entries are kept: a flood of refusals cannot displace entries of changes that were made.
MAX_ENTRIES: Final = 120
# Ten seconds of a flood become one write.
FLUSH_MS: Final = 10_000
# Repetitions in memory, a number each: more than a broker can request in FLUSH_MS.
MAX_PENDING: Final = 100_000
# Errors between a broker and the store; the client is told to retry, and nothing is decided.
NOT_OF_CLIENTS: Final = frozenset(
    {ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED}
)

Key: TypeAlias = tuple[str, ...]


@dataclass(slots=True)
class _Hour:
    """The refusals of one cluster in one hour, as this process has seen them."""

    hour: int
    # The number of the entry; 0 while it is being written.
    numbers: dict[Key, int] = field(default_factory=dict)
    # A deque, since its steps are safe in several threads.
    pending: deque[Key] = field(default_factory=lambda: deque(maxlen=MAX_PENDING))
    flushed_at_ms: int = 0


_hours: Final[dict[str, _Hour]] = {}


def note(*, cluster_id: str, refusals: Sequence[tuple[Proposal, Outcome]], now_ms: int) -> None:
    """Write the refusals of a call that has ended; log a failure of the database."""
    drafts = [
        draft
        for proposal, outcome in refusals
        if not proposal.validate_only and outcome.error not in NOT_OF_CLIENTS
        if (draft := audit.refused(proposal, outcome)) is not None
    ]
    if drafts:
        note_drafts(cluster_id=cluster_id, drafts=drafts, now_ms=now_ms)


def note_drafts(*, cluster_id: str, drafts: Sequence[Draft], now_ms: int) -> None:
    """Write entries of refusals, or count them if they are repeated; see `note`."""
    here = _hours.get(cluster_id)
    if here is None:
        here = _hours[cluster_id] = _Hour(now_ms // HOUR_MS)
    ended = None
    if here.hour != now_ms // HOUR_MS:
        # Counts of the hour that has ended are written to its entries.
        ended, here = here, _Hour(now_ms // HOUR_MS)
        _hours[cluster_id] = here
    new = _new(here, drafts, now_ms)
    is_due = bool(here.pending) and now_ms - here.flushed_at_ms >= FLUSH_MS
    if not (new or is_due or ended):
        return
    counts = _drained(here) + (_drained(ended) if ended else Counter())
    here.flushed_at_ms = now_ms
    try:
        numbers = _write(
            cluster_id=cluster_id, drafts=list(new.values()), counts=counts, now_ms=now_ms
        )
    except Error as error:
        for key in new:
            here.numbers.pop(key, None)
        log.limited("audit.refusals_lost", count=len(new) + len(counts), error=str(error).strip())
        return
    here.numbers.update(zip(new, numbers, strict=True))


def _new(here: _Hour, drafts: Sequence[Draft], now_ms: int) -> dict[Key, Draft]:
    """Return the entries to write now; count repetitions."""
    new: dict[Key, Draft] = {}
    for given in drafts:
        draft, key = given, _key(given, now_ms)
        if key not in here.numbers and len(here.numbers) >= MAX_ENTRIES:
            draft, key = _other(draft), ("other", draft.kind.value)
        if key in new:
            new[key] = replace(new[key], times=new[key].times + 1)
        elif key in here.numbers:
            here.pending.append(key)
        else:
            here.numbers[key] = 0
            new[key] = draft
    return new


def _key(draft: Draft, now_ms: int) -> Key:
    asking = draft.origin
    return (
        asking.actor,
        asking.client_id,
        asking.address,
        draft.kind.value,
        draft.name,
        draft.outcome,
        str(now_ms // MINUTE_MS),
    )


def _other(draft: Draft) -> Draft:
    """Return an entry that represents all of its kind in the rest of the hour."""
    return replace(
        draft,
        origin=Origin(actor=""),
        name="",
        outcome="several",
        message="refused too often to list each; see the logs of the clients",
    )


def _drained(here: _Hour) -> Counter[int]:
    """Take out the repetitions whose entries are written, by the entries' numbers."""
    counts: Counter[int] = Counter()
    for _ in range(len(here.pending)):
        try:
            key = here.pending.popleft()
        except IndexError:
            # Another thread took it.
            break
        if number := here.numbers.get(key, 0):
            counts[number] += 1
        else:
            here.pending.append(key)
    return counts


@transactional
def _write(
    *, cluster_id: str, drafts: Sequence[Draft], counts: Counter[int], now_ms: int
) -> list[int]:
    cluster = models.Cluster.objects.select_for_update().get(cluster_id=cluster_id)
    for number, times in counts.items():
        cluster.audit.filter(number=number).update(times=F("times") + times, last_at_ms=now_ms)
    if not drafts:
        return []
    return audit.append(cluster, drafts, version=cluster.version, now_ms=now_ms)
