"""Tracks the producer ids that this host knows to be in use, in addition to the database.

Knows no database. A database that is restored from an older copy, or a standby that takes over
without the last transactions, would give out blocks a second time. The agent therefore keeps the
highest id that its brokers have reported or were given, and asks for blocks above it. Ids that
only absent brokers know of remain, so the first block after the agent's start, or after a lost
connection, or after a broker's registration, leaves out a random number of ids.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from brokers.cluster.proposals import AllocateProducerIds, Outcome, ProducerIdsResult, Proposal

# A cluster that has issued a million ids since the copy was made meets one of them again with a
# chance of one in a million. The ids above 2^60 last for seven million such gaps.
SKIP_BITS: Final = 40


class IssuedIds:
    """The ids of one agent. `amended` may run in the database's thread, the rest in the loop's."""

    def __init__(self, random_skip: Callable[[], int] | None = None) -> None:
        self._random_skip = random_skip or _random_skip
        self._highest = -1
        # Whether the counter is known to be after the last block, with no doubt since.
        self._is_known = False
        # How often it became doubtful: a block that was requested before does not end a doubt.
        self.doubts = 0

    def reported(self, producer_id: int) -> None:
        """Record a registered broker's highest id; there may be unknown ids above it."""
        self._highest = max(self._highest, producer_id)
        self.doubt()

    def doubt(self) -> None:
        """Record that the database did not answer: an older copy may answer next."""
        self._is_known = False
        self.doubts += 1

    def amended(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Return the proposals with their blocks above all ids that are known here."""
        return [
            replace(proposal, action=self._above(proposal.action))
            if isinstance(proposal.action, AllocateProducerIds)
            else proposal
            for proposal in proposals
        ]

    def take(self, outcomes: Iterable[Outcome], *, doubts: int) -> None:
        """Record the issued blocks; `doubts` is its value when they were requested."""
        for outcome in outcomes:
            if isinstance(outcome.result, ProducerIdsResult):
                last = outcome.result.first + outcome.result.count - 1
                self._highest = max(self._highest, last)
                self._is_known = doubts == self.doubts

    def _above(self, asked: AllocateProducerIds) -> AllocateProducerIds:
        return AllocateProducerIds(
            highest_seen=max(asked.highest_seen, self._highest),
            skip=0 if self._is_known else self._random_skip(),
        )


def _random_skip() -> int:
    return secrets.randbits(SKIP_BITS)
