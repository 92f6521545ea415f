"""Passwords are hashed a few at a time, at a known cost, and hashes of other costs stay valid."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.contrib.auth.hashers import (
    Argon2PasswordHasher,
    check_password,
    make_password,
)
from django.test.utils import override_settings

from console import password_hasher
from console.password_hasher import PLACES, QUEUE, PasswordHasher, TooBusy, Turns

MIB = 1024
PATIENCE_S = 20


@pytest.fixture
def real_hasher() -> Iterator[None]:
    with override_settings(PASSWORD_HASHERS=["console.password_hasher.PasswordHasher"]):
        yield


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


def test_of_forty_logins_at_once_two_hash_twenty_wait_and_the_others_are_refused() -> None:
    turns, work = Turns(), Work()
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
    turns = Turns(places=1, queue=0)
    with pytest.raises(ZeroDivisionError), turns.turn():
        raise ZeroDivisionError

    with turns.turn(), pytest.raises(TooBusy, match="1 passwords"), turns.turn():
        pass
    with turns.turn():
        pass


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_hasher, "WAIT_SECONDS", 0.01)
    turns = Turns(places=1, queue=1)

    with turns.turn(), pytest.raises(TooBusy, match=r"within 0\.01 s"), turns.turn():
        pass


@pytest.mark.usefixtures("real_hasher")
@pytest.mark.slow
def test_hashing_and_checking_take_a_turn_each(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []

    class Counted(Turns):
        @contextmanager
        def turn(self) -> Iterator[None]:
            turns.append("turn")
            yield

    monkeypatch.setattr(password_hasher, "TURNS", Counted())

    encoded = make_password("open sesame")

    assert check_password("open sesame", encoded)
    assert turns == ["turn", "turn"]


@pytest.mark.usefixtures("real_hasher")
@pytest.mark.slow
def test_a_hash_of_the_release_before_opens_and_is_made_anew() -> None:
    before = Argon2PasswordHasher().encode("open sesame", "a" * 22)
    renewed: list[str] = []

    def renew(password: str) -> None:
        renewed.append(make_password(password))

    assert "m=102400,t=2,p=8" in before
    assert check_password("open sesame", before, setter=renew)
    assert "$argon2id$v=19$m=47104,t=2,p=1$" in renewed[0]
    assert check_password("open sesame", renewed[0], setter=renew)
    assert len(renewed) == 1


def test_the_memory_of_a_hash_is_what_owasp_asks_and_the_machine_can_give() -> None:
    assert 19 * MIB <= PasswordHasher.memory_cost <= 46 * MIB
    assert PasswordHasher.time_cost >= 2
    # The name in the hashes that there are.
    assert PasswordHasher.algorithm == "argon2"
