"""Changes of groups in the audit: what is begun, what became of it, and what was refused."""

import pytest

from brokers.cluster.origins import Origin
from tests.brokers.controlplane.host import NOW_MS, new_cluster

from brokers.controlplane import audit, models, services  # isort: skip
from brokers.controlplane.services import GroupChange, GroupChangeKind, refusals  # isort: skip

ALICE = Origin(actor="User:alice", address="192.0.2.7", session="5e55")


@pytest.fixture
def cluster_id(database: str) -> str:
    return new_cluster()


def change(group: str = "billing", kind: GroupChangeKind | None = None) -> GroupChange:
    return GroupChange(
        kind=kind or GroupChangeKind.RESET_OFFSETS,
        group=group,
        before={"orders 0": "40"},
        after={"orders 0": "17"},
        origin=ALICE,
    )


def test_a_change_is_begun_and_then_done_as_two_links_of_the_chain(cluster_id: str) -> None:
    first = services.note_begun(cluster_id=cluster_id, change=change(), now_ms=NOW_MS)
    second = services.note_outcome(
        cluster_id=cluster_id, change=change(), error=None, message="done", now_ms=NOW_MS + 1
    )

    done, begun = audit.entries(cluster_id=cluster_id)
    assert (begun.number, done.number) == (first, second) == (1, 2)
    assert (begun.is_begun, begun.is_refused) == (True, False)
    assert (done.is_begun, done.is_refused) == (False, False)
    assert (done.kind, done.subject, done.name) == ("reset offsets", "group", "billing")
    assert (done.actor, done.via, done.address) == ("User:alice", "browser", "192.0.2.7")
    assert (done.before, done.after) == ({"orders 0": "40"}, {"orders 0": "17"})
    assert not audit.verify(cluster_id=cluster_id).faults


@pytest.mark.parametrize("kind", GroupChangeKind)
def test_entries_are_found_by_kind_and_outcome(cluster_id: str, kind: GroupChangeKind) -> None:
    asked = change(kind=kind)
    services.note_begun(cluster_id=cluster_id, change=asked, now_ms=NOW_MS)
    services.note_outcome(
        cluster_id=cluster_id, change=asked, error="NON_EMPTY_GROUP", message="no", now_ms=NOW_MS
    )

    def found(**which: object) -> list[str]:
        asked = audit.Filter(**which)  # type: ignore[arg-type]
        return [each.outcome for each in audit.entries(cluster_id=cluster_id, which=asked)]

    assert found(kind=kind.value) == ["NON_EMPTY_GROUP", "BEGUN"]
    assert found(is_refused=True) == ["NON_EMPTY_GROUP"]
    assert found(is_refused=False) == []
    assert found(kind="create topic") == []


def test_a_refusal_that_is_repeated_is_one_entry_with_a_count(cluster_id: str) -> None:
    for at_ms in (0, 1, refusals.FLUSH_MS):
        services.note_refused(
            cluster_id=cluster_id,
            change=change(),
            error="INVALID_UPDATE_VERSION",
            message="it moved",
            now_ms=NOW_MS + at_ms,
        )

    [entry] = audit.entries(cluster_id=cluster_id)
    assert (entry.outcome, entry.message, entry.times) == ("INVALID_UPDATE_VERSION", "it moved", 3)


@pytest.mark.parametrize("group", ["g" * 3_000, "a\0b", "é" * 249, ""])
def test_a_group_of_any_name_has_its_entry(cluster_id: str, group: str) -> None:
    services.note_begun(cluster_id=cluster_id, change=change(group), now_ms=NOW_MS)

    [entry] = audit.entries(cluster_id=cluster_id)
    assert entry.name == group.replace("\0", "\N{REPLACEMENT CHARACTER}")[: models.TOPIC_NAME_CHARS]
    assert not audit.verify(cluster_id=cluster_id).faults
