"""Clients and logs share what the system allows a process to have open."""

import resource

import pytest

from brokers.server import descriptors
from brokers.storage.handles import default_budget


def limited(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> list[tuple[int, int]]:
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _kind, limits: set_to.append(limits))
    return set_to


def test_all_that_the_system_allows_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to = limited(monkeypatch, 1024, 20_000)

    descriptors.raise_limit()

    assert set_to == [(20_000, 20_000)]


@pytest.mark.parametrize("soft", [40, 1024, 20_000, 1_000_000])
def test_clients_get_what_logs_leave(monkeypatch: pytest.MonkeyPatch, soft: int) -> None:
    limited(monkeypatch, soft, soft)

    for_clients = descriptors.for_clients()

    assert for_clients >= 1
    assert for_clients == 1 or for_clients + default_budget() + descriptors.SPARE == soft


def test_without_a_limit_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    assert descriptors.for_clients() == 2**31 - 1
