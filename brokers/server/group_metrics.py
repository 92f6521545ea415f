"""Computes the metrics of groups when metrics are requested.

Does not render text. Running counters are only copied; the groups in each state are counted again,
in slices, and not more often than ten thousand groups a second allow.
"""

from typing import Final

from brokers.coordination.groups.describe import listed
from brokers.coordination.groups.modern import GroupState
from brokers.coordination.groups.states import ClassicState
from brokers.server.context import Context
from brokers.slices import Slices

GROUPS_PER_SECOND: Final = 10_000
STATES: Final = (*ClassicState, GroupState.ASSIGNING, GroupState.RECONCILING)


class GroupMetrics:
    """Belongs to the event loop."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._next_count = float("-inf")

    async def refresh(self) -> None:
        """Update the broker's metrics of groups."""
        metrics, groups = self._context.metrics, self._context.groups
        metrics.group_rebalances = groups.tally.rebalances
        metrics.offset_commits = groups.tally.commits
        metrics.parked_requests = groups.parked
        clock = self._context.clock
        if clock.monotonic() >= self._next_count:
            # Set before the first slice, so that a concurrent request does not count as well.
            self._next_count = float("inf")
            try:
                metrics.groups = await self._count()
            finally:
                walked = sum(metrics.groups.values())
                self._next_count = clock.monotonic() + max(1.0, walked / GROUPS_PER_SECOND)

    async def _count(self) -> dict[str, int]:
        counts = dict.fromkeys((state.value for state in STATES), 0)
        slices = Slices(self._context.clock)
        for _index, shard in tuple(self._context.groups.shards()):
            for group in listed(shard):
                counts[group.group_state] += 1
                await slices.breathe()
        return counts
