"""Queues operations on a subject that must not run at the same time.

Knows nothing of records and rounds. No operation overtakes one that waits for the same subject,
except operations without a claim, which never come here.
"""

from collections import deque
from typing import Final, Generic

from brokers.coordination.rounds import Pending
from brokers.coordination.shard import Claim, Operation, S

# Marks a subject that is claimed exclusively; other subjects have the number of shared claims.
_EXCLUSIVE: Final = -1


class Claims(Generic[S]):
    """The claims of one shard, each taken when records are being written, and then released."""

    __slots__ = ("_freed", "_held", "_queues", "waiting")

    def __init__(self) -> None:
        self._held: dict[str, int] = {}
        self._queues: dict[str, deque[Pending[S]]] = {}  # by subject; none of them is empty
        self._freed: deque[str] = deque()  # subjects whose next operation may be able to run
        self.waiting = 0

    @property
    def has_freed(self) -> bool:
        """Whether `pop` may find an operation."""
        return bool(self._freed)

    def admit(self, pending: Pending[S], *, is_next: bool = False) -> bool:
        """Return whether an operation may run now; queue it otherwise.

        `is_next`: it has waited and had its turn already, and goes back to the head of the queue.
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
        """Return the next operation that may run; None if none may at the first freed subject."""
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
        """Remove and return all queued operations whose callers wait for an answer."""
        dropped: list[Pending[S]] = []
        for subject, queue in list(self._queues.items()):
            dropped += (pending for pending in queue if pending.is_asked)
            kept = deque(pending for pending in queue if not pending.is_asked)
            if kept:
                self._queues[subject] = kept
                # The operations in front of it may be gone.
                self._freed.append(subject)
            else:
                del self._queues[subject]
        self.waiting -= len(dropped)
        return dropped

    def clear(self) -> list[Pending[S]]:
        """Drop all claims, and return the queued operations."""
        dropped = [pending for queue in self._queues.values() for pending in queue]
        self._held.clear()
        self._queues.clear()
        self._freed.clear()
        self.waiting = 0
        return dropped

    def _is_free(self, operation: Operation[S]) -> bool:
        held = self._held.get(operation.subject, 0)
        return held == 0 or (operation.claim is Claim.SHARED and held > 0)
