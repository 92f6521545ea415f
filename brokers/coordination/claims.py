"""Queues operations on a subject that must not run at the same time.

Knows nothing of records and rounds. Nothing overtakes what waits for the same subject, but what
claims nothing, which is never asked about here.
"""

from collections import deque
from typing import Final, Generic

from brokers.coordination.rounds import Pending
from brokers.coordination.shard import Claim, Operation, S

# Of a subject that somebody changes exclusively; otherwise the number of those who share it.
_EXCLUSIVE: Final = -1


class Claims(Generic[S]):
    """Of one shard. A claim is taken when records are on their way, and released afterwards."""

    __slots__ = ("_freed", "_held", "_queues", "waiting")

    def __init__(self) -> None:
        self._held: dict[str, int] = {}
        self._queues: dict[str, deque[Pending[S]]] = {}  # by subject; none of them is empty
        self._freed: deque[str] = deque()  # subjects at which somebody may go on
        self.waiting = 0

    @property
    def has_freed(self) -> bool:
        """Whether `pop` may find somebody."""
        return bool(self._freed)

    def admit(self, pending: Pending[S], *, is_next: bool = False) -> bool:
        """Whether an operation may run now; otherwise it waits.

        `is_next`: it has waited already and had its turn, and goes back to the head of the line.
        """
        subject = pending.operation.subject
        queue = self._queues.get(subject)
        if (queue is None or is_next) and self._is_free(pending.operation):
            return True
        if queue is None:
            queue = self._queues[subject] = deque()
        if is_next:
            queue.appendleft(pending)
        else:
            queue.append(pending)
        self.waiting += 1
        return False

    def take(self, operation: Operation[S]) -> None:
        subject = operation.subject
        if operation.claim is Claim.EXCLUSIVE:
            self._held[subject] = _EXCLUSIVE
        else:
            self._held[subject] = self._held.get(subject, 0) + 1

    def release(self, operation: Operation[S]) -> None:
        subject = operation.subject
        held = self._held[subject]
        if held in (_EXCLUSIVE, 1):
            del self._held[subject]
        else:
            self._held[subject] = held - 1
        if subject in self._queues:
            self._freed.append(subject)

    def pop(self) -> Pending[S] | None:
        """The next that may run; None where nobody may at the subject that was looked at."""
        subject = self._freed.popleft()
        queue = self._queues.get(subject)
        if queue is None or not self._is_free(queue[0].operation):
            return None
        pending = queue.popleft()
        self.waiting -= 1
        if queue:
            self._freed.appendleft(subject)
        else:
            del self._queues[subject]
        return pending

    def drop_asked(self) -> list[Pending[S]]:
        """Takes out of all lines whom somebody waits for."""
        dropped: list[Pending[S]] = []
        for subject, queue in list(self._queues.items()):
            dropped += (pending for pending in queue if pending.is_asked)
            kept = deque(pending for pending in queue if not pending.is_asked)
            if kept:
                self._queues[subject] = kept
                # Whom it waited for may be gone.
                self._freed.append(subject)
            else:
                del self._queues[subject]
        self.waiting -= len(dropped)
        return dropped

    def clear(self) -> list[Pending[S]]:
        """Forgets all claims, and returns who was in line."""
        dropped = [pending for queue in self._queues.values() for pending in queue]
        self._held.clear()
        self._queues.clear()
        self._freed.clear()
        self.waiting = 0
        return dropped

    def _is_free(self, operation: Operation[S]) -> bool:
        held = self._held.get(operation.subject, 0)
        return held == 0 or (operation.claim is Claim.SHARED and held > 0)
