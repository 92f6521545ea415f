"""Passwords are hashed a few at a time, at a known cost, and hashes of other costs stay valid."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.contrib.auth.hashers import (
    Argon2PasswordHasher,
    check_password,
    make_password,
)
from pytest_django import Settings

from gateway.access import password_hasher
from gateway.access.password_hasher import PasswordHasher

MIB = 1024


@pytest.fixture
def real_hasher(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["gateway.access.password_hasher.PasswordHasher"]


@pytest.mark.usefixtures("real_hasher")
@pytest.mark.slow
def test_hashing_and_checking_take_a_turn_each(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []

    class Counted:
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
