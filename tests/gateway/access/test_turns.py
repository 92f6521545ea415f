"""Few do a costly thing at once, few wait, and nobody waits for ever."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gateway.access.turns import TooBusy, Turns

PATIENCE_S = 20
PLACES, QUEUE = 2, 20


def turns_of(places: int, queue: int, *, wait_s: float = PATIENCE_S) -> Turns:
    return Turns(places=places, queue=queue, wait_s=wait_s, what="passwords are being checked")


class Work:
    """What hashing stands for here: it lasts until it is let go, and counts who is at it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._may_end = threading.Event()
        self.at_once = self.most = self.refused = self.done = 0
        self.changed = threading.Condition(self._lock)

    def go_on(self) -> None:
        self._may_end.set()

    @contextmanager
    def counted(self) -> Iterator[None]:
        with self.changed:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            self.changed.notify_all()
        yield
        with self.changed:
            self.at_once -= 1
            self.done += 1
            self.changed.notify_all()

    def once(self, turns: Turns) -> None:
        try:
            with turns.turn(), self.counted():
                assert self._may_end.wait(PATIENCE_S)
        except TooBusy:
            with self.changed:
                self.refused += 1
                self.changed.notify_all()


def test_of_forty_at_once_two_work_twenty_wait_and_the_others_are_refused() -> None:
    turns, work = turns_of(PLACES, QUEUE), Work()
    threads = [threading.Thread(target=work.once, args=(turns,)) for _ in range(40)]

    for thread in threads:
        thread.start()
    with work.changed:
        settled = work.changed.wait_for(
            lambda: work.at_once == PLACES and work.refused == 40 - PLACES - QUEUE, PATIENCE_S
        )
    work.go_on()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert settled
    assert (work.most, work.done, work.refused) == (PLACES, PLACES + QUEUE, 40 - PLACES - QUEUE)


def test_a_place_is_free_again_whatever_happened_in_it() -> None:
    turns = turns_of(1, 0)
    with pytest.raises(ZeroDivisionError), turns.turn():
        raise ZeroDivisionError

    with turns.turn(), pytest.raises(TooBusy, match="1 passwords"), turns.turn():
        pass
    with turns.turn():
        pass


def test_nobody_waits_for_ever() -> None:
    turns = turns_of(1, 1, wait_s=0.01)

    with turns.turn(), pytest.raises(TooBusy, match=r"within 0\.01 s"), turns.turn():
        pass
