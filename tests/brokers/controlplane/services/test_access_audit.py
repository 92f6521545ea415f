"""Changes of users and tokens in the audit: each once, with the time when it was made."""

from collections.abc import Mapping

import pytest

from brokers.cluster.origins import Origin, Via
from tests.brokers.controlplane.host import NOW_MS, new_cluster

from brokers.controlplane import audit, services  # isort: skip
from brokers.controlplane.services import AccessChange, AccessChangeKind  # isort: skip
from brokers.controlplane.services.access_audit import (  # isort: skip
    COUNTED_WITHIN_MS,
    OF_EVERYBODY,
)

ALICE = Origin(actor="User:alice", address="192.0.2.7")


@pytest.fixture
def cluster_id(database: str) -> str:
    return new_cluster()


def change(
    kind: AccessChangeKind = AccessChangeKind.GIVE_RIGHT,
    *,
    after: Mapping[str, str] | None = None,
    made_at_ms: int = NOW_MS - 5_000,
) -> AccessChange:
    return AccessChange(
        kind=kind,
        subject="user",
        name="bob",
        before={},
        after=after or {"grant": "viewer on all clusters"},
        origin=ALICE,
        via=Via.BROWSER,
        made_at_ms=made_at_ms,
    )


def test_a_change_has_the_time_when_it_was_made(cluster_id: str) -> None:
    assert services.note_access_change(cluster_id=cluster_id, change=change())

    [entry] = audit.entries(cluster_id=cluster_id)
    assert (entry.made_at_ms, entry.kind, entry.subject) == (NOW_MS - 5_000, "give right", "user")
    assert (entry.actor, entry.via, entry.after) == ("User:alice", "browser", change().after)
    assert not audit.verify(cluster_id=cluster_id).faults


def test_a_change_that_is_told_again_is_written_once(cluster_id: str) -> None:
    written = [
        services.note_access_change(cluster_id=cluster_id, change=told)
        for told in (
            change(),
            change(),
            change(after={"grant": "operator on all clusters"}),
            change(AccessChangeKind.TAKE_RIGHT),
            change(made_at_ms=NOW_MS),
        )
    ]

    assert written == [True, False, True, True, True]
    assert len(audit.entries(cluster_id=cluster_id)) == 4


@pytest.mark.parametrize("kind", AccessChangeKind)
def test_every_kind_fits_its_column(cluster_id: str, kind: AccessChangeKind) -> None:
    services.note_access_change(cluster_id=cluster_id, change=change(kind))

    [entry] = audit.entries(cluster_id=cluster_id, which=audit.Filter(kind=kind.value))
    assert entry.name == "bob"


@pytest.mark.parametrize("kind", sorted(OF_EVERYBODY))
def test_what_a_user_repeats_without_rights_is_counted_on_one_entry_an_hour(
    cluster_id: str, kind: AccessChangeKind
) -> None:
    for number in range(200):
        told = change(kind, after={"sessions": str(number)}, made_at_ms=NOW_MS + number)
        assert services.note_access_change(cluster_id=cluster_id, change=told)
    again = change(kind, after={"sessions": "1"}, made_at_ms=NOW_MS + 100)
    assert not services.note_access_change(cluster_id=cluster_id, change=again)
    services.note_access_change(
        cluster_id=cluster_id, change=change(kind, made_at_ms=NOW_MS + COUNTED_WITHIN_MS)
    )

    later, first = audit.entries(cluster_id=cluster_id)
    assert (first.times, first.last_at_ms) == (200, NOW_MS + 199)
    assert later.times == 1
    assert not audit.verify(cluster_id=cluster_id).faults


def test_changes_that_need_a_right_are_entries_of_their_own(cluster_id: str) -> None:
    for number in range(3):
        told = change(AccessChangeKind.RESET_PASSWORD, made_at_ms=NOW_MS + number)
        services.note_access_change(cluster_id=cluster_id, change=told)

    assert [entry.times for entry in audit.entries(cluster_id=cluster_id)] == [1, 1, 1]
