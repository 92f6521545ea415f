"""Tracks the progress of a job, and how a batch changes it, for any target of the rows.

The caller stores it: beside a table, or as a note of the task.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from connectors.plugins.spark import attempts, batch_size, batches, engine, former_topics
from connectors.plugins.spark.batch_size import BatchTooLarge
from connectors.plugins.spark.batches import Batch, State
from connectors.plugins.spark.pacing import Pacing
from connectors.plugins.spark.tries import Tries
from connectors.sdk.connector import JobContext
from connectors.sdk.errors import ConnectorError


class Progress:
    def __init__(
        self, context: JobContext, pacing: Pacing, state: State, keep: Callable[[State], None]
    ) -> None:
        self._context = context
        self._pacing = pacing
        self._keep = keep
        self.state = state

    def keep(self, state: State) -> None:
        """Store a state durably, and use it from now on."""
        self._context.require_lease()
        self._keep(state)
        self.state = state

    def is_idle(self) -> bool:
        """Return whether all is read; if so, the caller does not ask for topic ids every second.

        A recreated topic that ends at the same offset is found when it grows.
        """
        if self.state.batch is not None:
            return False
        bounds = self._context.bounds()
        return all(self.state.next.get(place) == end for place, (_, end) in bounds.items())

    def settle(self) -> None:
        """Forget deleted and recreated topics; shrink a batch during which the worker ended."""
        self.state, has_left = former_topics.settle(self._context, self.state)
        if has_left:
            self.keep(self.state)
        batch = self.state.batch
        if batch is not None and batch.files is None and batch.is_begun:
            self._judge(batch)

    def _judge(self, batch: Batch) -> None:
        """Shrink a batch that was begun, unless its worker lives or ended for another reason."""
        if attempts.has_survived(self.state):
            self.keep(batch_size.unbegun(self.state))
        elif attempts.is_spared(batch, attempts.home_run()):
            again, line = batch_size.spared(self.state)
            self.keep(again)
            self._context.log(line)
        else:
            self._shrink(batch_size.ENDED)

    def plan(self) -> State:
        """Return the state with the next batch; without one while it waits for more records.

        Store its start offsets in either case: the end of a new partition changes later.
        """
        most = batch_size.limit(self.state, self._pacing.most)
        planned, lines = former_topics.plan(self._context, self.state, most=most)
        if planned.batch is not None and self._pacing.is_early(planned.batch, most=most):
            planned = replace(planned, batch=None)
        for line in lines:
            self._context.log(line)
        return planned

    @contextmanager
    def attempt(self, batch: Batch) -> Iterator[None]:
        """Note that a batch has begun; shrink the next attempt if it was too large."""
        self._pacing.begin()
        begun = replace(batch, is_begun=True, begun_by=attempts.home_run())
        self.keep(replace(self.state, batch=begun))
        try:
            with (
                attempts.noting_stop(lambda: self._context.is_stopping, self._note_stop),
                engine.batch(Tries.of(self._context)),
            ):
                yield
        except BatchTooLarge as error:
            self._shrink(str(error))
            raise
        except Exception:
            # The worker lives, so the batch did not end it. Raise the first error.
            try:
                self.keep(batch_size.unbegun(self.state))
            except Exception:  # noqa: BLE001 - the lease is lost, or the disk is full
                attempts.survived(self.state)
            raise

    def _note_stop(self) -> None:
        # Store only: another thread uses the state, and may be finishing the batch.
        self._context.require_lease()
        self._keep(batch_size.unbegun(self.state))

    def done(self) -> State:
        """Return the state after the batch."""
        assert self.state.batch is not None, "a batch is done that was planned"
        return batch_size.grown(
            batches.done(self.state),
            size=self.state.batch.size,
            configured=self._pacing.most,
            took_s=self._pacing.took_s(),
        )

    def _shrink(self, why: str) -> None:
        try:
            smaller, line = batch_size.shrunk(self.state, why)
        except ConnectorError:
            # A restart of the task starts to count at zero.
            self.keep(replace(batch_size.unbegun(self.state), ends=0))
            raise
        self.keep(smaller)
        self._context.log(line)
