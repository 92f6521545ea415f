"""Committing while a broker dies, with a ledger of what was acknowledged, and the judgement after.

Each group has a connection and a thread of its own, which commits the next number to all of its
places and waits for the answer, so a crash finds commits of many groups in one batch, or between
two. What was acknowledged is the least that must be there afterwards; what was sent is the most.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.raw_groups import Coordinated, GroupError, Place, patiently

JOIN_SECONDS = 60.0


@dataclass(slots=True)
class Ledger:
    """Of one group; every place has the same number."""

    sent: int = 0
    acknowledged: int = 0
    errors: list[str] = field(default_factory=list)


class Committer:
    """One group that commits 1, 2, 3 … until its broker is gone, or it is told to stop."""

    def __init__(self, bootstrap: str, group: str, places: tuple[Place, ...]) -> None:
        self.group = group
        self.ledger = Ledger()
        self._bootstrap = bootstrap
        self._places = places
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def start(self) -> None:
        """Find the coordinator and go on where the last number was."""
        opened = patiently(lambda: Coordinated(self._bootstrap, self.group))
        # The first one waits for a coordinator that is not ready; later ones must not hide that.
        self.ledger.sent += 1
        patiently(lambda: opened.commit(dict.fromkeys(self._places, self.ledger.sent)))
        self.ledger.acknowledged = self.ledger.sent
        self._over.clear()
        self._thread = threading.Thread(target=self._commit, args=(opened,), daemon=True)
        self._thread.start()

    def _commit(self, opened: Coordinated) -> None:
        try:
            while not self._over.is_set():
                self.ledger.sent += 1
                opened.commit(dict.fromkeys(self._places, self.ledger.sent))
                self.ledger.acknowledged = self.ledger.sent
        except OSError:
            return  # The broker is dead, which is what the test is about.
        except GroupError as error:
            self.ledger.errors.append(str(error))
        finally:
            opened.close()

    def stop(self) -> None:
        """Wait until it has stopped, or the broker's death has reached it."""
        self._over.set()
        assert self._thread is not None
        self._thread.join(JOIN_SECONDS)
        assert not self._thread.is_alive(), f"{self.group} still commits"

    def found(self) -> Mapping[Place, int]:
        """What the broker that came back says is committed."""

        def ask() -> Mapping[Place, int]:
            opened = Coordinated(self._bootstrap, self.group)
            try:
                return opened.offsets()
            finally:
                opened.close()

        return patiently(ask)


def judge(committer: Committer) -> str | None:
    """Say what is wrong with a group after a crash; it may go on from what was found."""
    ledger, found = committer.ledger, committer.found()
    if ledger.errors:
        return f"{committer.group} was refused: {ledger.errors}"
    numbers = set(found.values()) or {0}
    if len(numbers) > 1:
        return f"torn: {committer.group} has a part of one commit: {sorted(numbers)}"
    (number,) = numbers
    if not ledger.acknowledged <= number <= ledger.sent:
        return (
            f"lost: {committer.group} was told {ledger.acknowledged} of {ledger.sent} are safe, "
            f"and has {number}"
        )
    ledger.acknowledged = ledger.sent = number
    return None
