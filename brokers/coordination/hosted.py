"""Runs one shard: orders its operations, and writes their records in one round after another.

Claims order the operations of a subject; their records gather while a round is being written to
disk, and form the next one. The shard does not change before its records are safe, so that a
refused append needs no rollback, and no client sees state that might be lost.

Belongs to the event loop. Knows nothing of the cluster: the runtime that hosts it ends it.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, Generic

from brokers.coordination.answers import Done
from brokers.coordination.claims import Claims
from brokers.coordination.house import House
from brokers.coordination.rounds import (
    Pending,
    Round,
    answer_of,
    batch_of,
    client_error,
    not_coordinator,
    take_round,
)
from brokers.coordination.shard import (
    NOBODY,
    PARKED,
    Answer,
    Claim,
    Operation,
    Outcome,
    Reply,
    S,
    Shard,
    Ticket,
    TimerKey,
)
from brokers.coordination.timers import Timers
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import HEADER_SIZE
from brokers.replication.partition import Partition
from brokers.slices import Slices

# The delay after a timer's operation was refused, since it is still due.
RETRY_TIMER_MS: Final = 500
# Errors on the way to the log; any other error is the operation's own answer.
_REFUSALS: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
# Marks the end of an iterator of later operations.
_THE_END: Final = object()


class Hosted(Generic[S]):
    """One shard and its queues. The runtime calls `submit` and `later` once it is loaded."""

    def __init__(
        self,
        index: int,
        partition: Partition,
        shard: S,
        protocol: Shard[S],
        house: "House[Hosted[S]]",
    ) -> None:
        self.index = index
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.shard = shard
        # The same object; two names, since a type variable cannot be bound to a protocol of itself.
        self._shard = protocol
        self._house = house
        self._timers = Timers(house.deadlines, house.clock, self._timer_fired)
        self._claims: Claims[S] = Claims()
        self._gathering: deque[Pending[S]] = deque()
        self._round: Round[S] | None = None
        self._parked: dict[int, Done] = {}
        # Operations without a client: fired timers, and those that chores find step by step.
        self._fired: deque[Pending[S]] = deque()
        self._later: deque[Iterator[Operation[S] | None]] = deque()
        self._is_started = False
        self._is_late = False
        self.has_turn_coming = False
        self._is_gone = False
        self._settled: asyncio.Future[None] | None = None

    # -- operations in ---------------------------------------------------------------------------

    def submit(self, operation: Operation[S], done: Done) -> None:
        """Run an operation in this turn or when its claim allows; `done` gets the answer, once."""
        pending = Pending(operation, next(self._house.tickets), done)
        if operation.claim is Claim.NONE or self._has_room(pending):
            self._admit(pending)

    def later(self, operations: Iterable[Operation[S] | None]) -> None:
        """Run operations without a waiting client, one step at a time, as they are found."""
        self._later.append(iter(operations))
        self._house.turns.come(self)

    async def start(self, slices: Slices) -> None:
        """Set the timers of a loaded shard. One that fires before the end of this waits for it."""
        for outcome in self._shard.loaded(self._house.clock.now_ms()):
            assert not outcome.records, "a loaded group needs no records"
            if not self._apply(outcome):
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"{self.partition.topic}-{self.index} was read and cannot be used",
                )
            await slices.breathe()
        self._is_started = True
        if self._has_more:
            self._house.turns.come(self)

    @property
    def _on_way(self) -> int:
        """The number of operations that wait for their turn, or for the disk."""
        in_round = 0 if self._round is None else len(self._round.pendings)
        return self._claims.waiting + len(self._gathering) + in_round

    def _has_room(self, pending: Pending[S]) -> bool:
        """Return whether one more operation may wait; refuse it otherwise."""
        if self._is_late:
            self._hear(pending)
            self._refuse(pending, "the disk does not confirm what was written before")
            return False
        if self._on_way >= self._house.limits.max_queued:
            self._refuse(pending, f"{self._on_way} operations wait already")
            return False
        return True

    def _admit(self, pending: Pending[S], *, is_next: bool = False) -> None:
        """Run an operation, or queue it until its turn; `is_next`: this is its turn."""
        is_free = pending.operation.claim is Claim.NONE
        if is_free or self._claims.admit(pending, is_next=is_next):
            self._run(pending, is_next=is_next)

    def _run(self, pending: Pending[S], *, is_next: bool = False) -> None:
        operation, house = pending.operation, self._house
        try:
            outcome = operation.run(self.shard, house.clock.now_ms(), pending.ticket)
            if outcome is None:
                assert operation.otherwise is not None, f"{operation.name} has nothing otherwise"
                pending.operation = operation.otherwise
            elif outcome.records:
                assert operation.claim is not Claim.NONE, f"{operation.name} claims nothing"
            if outcome is not None and outcome.response is PARKED:
                assert pending.is_asked, f"{operation.name} parks no caller"
        except KafkaError as error:
            self._answer_now(pending, error)
            return
        except Exception as error:  # noqa: BLE001 - a bug that must cost nobody else anything
            house.on_trouble("coordinator.operation_failed", error)
            self._answer_now(pending, _failed(operation))
            return
        if outcome is None:
            # An operation that had no claim before waits from now on, like others.
            if not pending.is_asked or self._has_room(pending):
                self._admit(pending, is_next=is_next)
        elif outcome.response is not PARKED or self._park(pending):
            pending.take(outcome)
            if outcome.records:
                self._gather(pending)
            else:
                self._finish(pending, outcome)

    def _park(self, pending: Pending[S]) -> bool:
        """Store the callback of a later answer; refuse the operation and return False if full."""
        house, done = self._house, pending.done
        assert done is not None, f"{pending.operation.name} is answered already"
        if house.parked >= house.limits.max_parked:
            self._refuse(pending, f"{house.parked} requests are parked already")
            return False
        house.parked += 1
        self._parked[pending.ticket] = done
        return True

    def _finish(self, pending: Pending[S], outcome: Outcome[S]) -> None:
        """Apply and answer an outcome without records, all in this turn."""
        if not self._apply(outcome):
            self._answer_now(pending, _failed(pending.operation))
            self._house.on_end(self)
            return
        answer = answer_of(pending)
        if answer is not None:
            self._answer_now(pending, answer)
        if outcome.replies:
            self._reply(outcome.replies)
            self._house.answers.deliver()

    # -- rounds ----------------------------------------------------------------------------------

    def _gather(self, pending: Pending[S]) -> None:
        settings = self.partition.settings.log
        limit = min(settings.rules.max_batch_bytes, settings.segment_bytes)
        if pending.size + HEADER_SIZE > limit:
            message = f"{pending.size} bytes of records are more than the {limit} of one batch"
            self._answer_now(pending, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message))
            return
        self._claims.take(pending.operation)
        self._gathering.append(pending)
        if self._round is None:
            self._house.turns.come(self)

    def _start_round(self) -> None:
        """Append the gathered records; the check of the leadership is in the same turn."""
        house, partition = self._house, self.partition
        rules = partition.settings.log.rules
        limit = min(house.limits.max_round_bytes, rules.max_batch_bytes)
        taken = take_round(self._gathering, limit)
        now_ms = house.clock.now_ms()
        try:
            appended = partition.append_as_coordinator(
                memoryview(batch_of(taken, now_ms)), now_ms, leader_epoch=self.epoch
            )
        except KafkaError as error:
            self._drop(taken, client_error(error))
            return
        except Exception as error:  # noqa: BLE001 - a bug; those who wait must hear of it
            house.on_trouble("coordinator.append_failed", error)
            message = "the records could not be appended, see the broker's log"
            self._drop(taken, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message))
            return
        started = Round(self, taken, now_ms=now_ms, began=house.clock.monotonic())
        self._round = started
        if appended.last_offset < partition.high_watermark:
            self.committed(started)
            return
        partition.wait_for(appended.last_offset + 1, started, 0)
        house.deadlines.add(started, house.limits.commit_timeout_ms)

    def committed(self, ended: Round[S]) -> None:
        """Apply a round whose records are safe, and answer; called by the round."""
        if ended is not self._round:
            return
        house = self._house
        for pending in ended.pendings:
            assert pending.outcome is not None, f"{pending.operation.name} has not been run"
            if not self._apply(pending.outcome, ended.now_ms):
                # The shard could not apply records of the log; clients are answered at its end.
                house.on_end(self)
                return
        self._round = None
        self._is_late = False
        house.deadlines.remove(ended)
        house.on_round(house.clock.monotonic() - ended.began)
        for pending in ended.pendings:
            self._claims.release(pending.operation)
            if pending.outcome is not None and pending.outcome.then is not None:
                self._continue(pending, pending.outcome.then)
                continue
            answer = answer_of(pending)
            if answer is not None:
                self._answer(pending, answer)
            if pending.outcome is not None:
                self._reply(pending.outcome.replies)
        house.answers.deliver()
        if self._has_more or self._settled is not None:
            house.turns.come(self)

    def _continue(self, pending: Pending[S], then: Operation[S]) -> None:
        """Run an operation's next step, which takes the claim again before any other operation."""
        before = pending.operation
        assert (then.subject, then.claim) == (before.subject, before.claim), f"{then.name} strays"
        assert then.claim is Claim.EXCLUSIVE, f"{then.name} may not be the only one"
        pending.operation = then
        self._run(pending, is_next=True)

    def lost(self, ended: Round[S]) -> None:
        """End the shard, since the round's leadership is over; called by the round."""
        if ended is self._round:
            self._house.on_end(self)

    def late(self) -> None:
        """Refuse the clients that wait for a late round, or behind it, with a retriable error.

        Operations without a client keep waiting, since no client would repeat them.
        """
        if self._round is None:
            return
        self._is_late = True
        error = KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"the disk has not confirmed in {self._house.limits.commit_timeout_ms} ms",
        )
        for pending in self._round.pendings:
            if pending.is_asked:
                self._hear(pending)
                self._answer(pending, error)
        gathering, self._gathering = self._gathering, deque()
        for pending in gathering:
            if pending.is_asked:
                self._hear(pending)
                self._claims.release(pending.operation)
                self._answer(pending, error)
            else:
                self._gathering.append(pending)
        for pending in self._claims.drop_asked():
            self._hear(pending)
            self._answer(pending, error)
        self._house.answers.deliver()
        self._house.turns.come(self)

    def _hear(self, pending: Pending[S]) -> None:
        """Postpone the timer of a member whose request the disk refuses: the member is alive."""
        heard, timer = pending.operation.heard, None
        with self._house.reporting("coordinator.operation_failed"):
            timer = None if heard is None else heard(self.shard)
        if timer is not None:
            self._timers.take(timer)

    def _drop(self, pendings: list[Pending[S]], error: KafkaError) -> None:
        """Answer operations with an error; none of their records was written."""
        for pending in pendings:
            self._hear(pending)
            self._claims.release(pending.operation)
            self._answer(pending, error)
        self._house.answers.deliver()
        self._house.turns.come(self)

    def _apply(self, outcome: Outcome[S], timestamp: int = 0) -> bool:
        """Apply an outcome to the shard; False if a bug prevented it."""
        shard = self._shard
        try:
            for record in outcome.records:
                shard.replay(record, timestamp)
            for soft in outcome.soft:
                shard.apply(soft)
        except Exception as error:  # noqa: BLE001 - a bug; the shard may be half changed
            self._house.on_trouble("coordinator.replay_failed", error)
            return False
        for timer in outcome.timers:
            self._timers.take(timer)
        for job in outcome.jobs:
            self._house.jobs.start(self, job, self._take_found)
        return True

    # -- turns -----------------------------------------------------------------------------------

    @property
    def _has_more(self) -> bool:
        """Whether there is work that does not wait for the disk."""
        if self._gathering and self._round is None:
            return True
        return bool(self._claims.has_freed or self._fired or self._later)

    def take_turn(self) -> bool:
        """Do one step: first queued operations, then the next round, timers, later operations."""
        if self._is_gone or not self._is_started:
            return False
        if self._claims.has_freed:
            pending = self._claims.pop()
            if pending is not None:
                self._admit(pending, is_next=True)
        elif self._gathering and self._round is None:
            self._start_round()
        elif self._fired:
            self._admit(self._fired.popleft())
        elif self._later:
            self._look_for_more()
        if self._has_more:
            return True
        if self._settled is not None and self._is_settled and not self._settled.done():
            self._settled.set_result(None)
        return False

    def _look_for_more(self) -> None:
        """Do one step of the later operations; their iterators take turns."""
        looking, operation = self._later.popleft(), _THE_END
        with self._house.reporting("coordinator.operation_failed"):
            operation = next(looking, _THE_END)
        if operation is _THE_END:
            return
        self._later.append(looking)
        if isinstance(operation, Operation):
            self._admit(Pending(operation, NOBODY, None))

    def _timer_fired(self, key: TimerKey) -> None:
        def failed(answer: Answer) -> None:
            is_refused = isinstance(answer, KafkaError) and answer.code in _REFUSALS
            if is_refused and not self._is_gone:
                self._timers.set(key, RETRY_TIMER_MS, only_if_absent=True)

        operation = None
        with self._house.reporting("coordinator.timer_failed"):
            operation = self._unless_put_off(key, self._shard.timer_fired(key))
        if operation is None:
            return
        # Not at once: those of thousands of members may fire together.
        self._fired.append(Pending(operation, NOBODY, failed))
        self._house.turns.come(self)

    def _unless_put_off(self, key: TimerKey, operation: Operation[S]) -> Operation[S]:
        """Make a timer's operation do nothing if an operation before it has set the timer again."""

        def run(shard: S, now_ms: int, ticket: Ticket) -> Outcome[S] | None:
            return Outcome() if key in self._timers else operation.run(shard, now_ms, ticket)

        return replace(operation, run=run)

    def _take_found(self, operation: Operation[S]) -> None:
        if not self._is_gone:
            self._admit(Pending(operation, NOBODY, None))

    # -- answers ---------------------------------------------------------------------------------

    def _answer_now(self, pending: Pending[S], answer: Answer) -> None:
        done = self._done_of(pending)
        if done is not None and (pending.is_asked or isinstance(answer, KafkaError)):
            self._house.answers.give(done, answer)

    def _answer(self, pending: Pending[S], answer: Answer) -> None:
        done = self._done_of(pending)
        if done is not None and (pending.is_asked or isinstance(answer, KafkaError)):
            self._house.answers.add(done, answer)

    def _done_of(self, pending: Pending[S]) -> Done | None:
        """Return the callback, unless it was used already; a parked operation is unparked."""
        done, pending.done = pending.done, None
        if self._parked.pop(pending.ticket, None) is not None:
            self._house.parked -= 1
        elif pending.outcome is not None and pending.outcome.response is PARKED:
            return None  # redirected already
        return done

    def _reply(self, replies: Iterable[Reply]) -> None:
        for reply in replies:
            done = self._parked.pop(reply.ticket, None)
            if done is not None:
                self._house.parked -= 1
                self._house.answers.add(done, reply.answer)

    def _refuse(self, pending: Pending[S], reason: str) -> None:
        self._answer_now(pending, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, reason))

    # -- the end ---------------------------------------------------------------------------------

    @property
    def _is_settled(self) -> bool:
        is_idle = self._round is None and not self._gathering
        return is_idle and not (self._claims.has_freed or self._fired or self._later)

    async def settle(self) -> None:
        """Wait until no records are on their way to the log."""
        while not self._is_settled:
            self._settled = self._house.loop.create_future()
            self._house.turns.come(self)
            await self._settled

    def send_away(self) -> None:
        """Answer parked requests with the error to look for another coordinator."""
        # After a bug there they are answered anyway, below.
        with self._house.reporting("coordinator.unload_failed"):
            self._reply(self._shard.unloaded())
        moved = not_coordinator(self.partition.topic, self.index)
        for done in self._parked.values():
            self._house.answers.add(done, moved)
        self._house.parked -= len(self._parked)
        self._parked.clear()
        self._house.answers.deliver()

    def unload(self) -> None:
        """End the shard: all waiting clients are told to look for another coordinator."""
        self._is_gone = True
        self._timers.clear()
        self._house.jobs.forget(self)
        on_way = [*self._gathering, *self._claims.clear()]
        if self._round is not None:
            self._house.deadlines.remove(self._round)
            on_way = [*self._round.pendings, *on_way]
        self._round = None
        self._gathering.clear()
        self._fired.clear()
        self._later.clear()
        moved = not_coordinator(self.partition.topic, self.index)
        for pending in on_way:
            if pending.is_asked:
                self._answer(pending, moved)
        self.send_away()
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)


def _failed(operation: Operation[Any]) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_SERVER_ERROR, f"{operation.name} has failed, see the broker's log"
    )
