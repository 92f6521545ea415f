"""The audit: what is written of a change, by whom, and that nobody takes it back unseen."""

from io import StringIO

import pytest

from brokers.cluster.image import ResourceType
from brokers.cluster.origins import Origin
from brokers.cluster.proposals import (
    Action,
    AllocateProducerIds,
    AlterConfigs,
    ConfigEdit,
    CreatePartitions,
    DeleteTopic,
    Proposal,
)
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.brokers.controlplane.host import NOW_MS, new_cluster
from tests.brokers.controlplane.test_services import asking, propose, serving, topic

from django.core.management import CommandError, call_command  # isort: skip
from django.db import DatabaseError  # isort: skip

from brokers.cluster import levels  # isort: skip
from brokers.controlplane import audit, models, services  # isort: skip
from brokers.controlplane.services import audit as writing  # isort: skip
from brokers.controlplane.services import refusals  # isort: skip

ALICE = Origin(actor="User:alice", address="192.0.2.7", session="5e55")


@pytest.fixture
def cluster_id(database: str) -> str:
    made = new_cluster()
    serving(made)
    return made


def from_wire(cluster_id: str, action: Action, *, client_id: str = "producer-1") -> Proposal:
    row = models.Broker.objects.get(cluster__cluster_id=cluster_id)
    return Proposal(
        id=asking(action).id,
        action=action,
        actor="User:ANONYMOUS",
        broker_id=row.broker_id,
        broker_epoch=row.epoch,
        client_id=client_id,
        address="192.0.2.9",
    )


def only(cluster_id: str) -> audit.Entry:
    (entry,) = audit.entries(cluster_id=cluster_id)
    return entry


def retention(name: str, value: str = "1000") -> AlterConfigs:
    return AlterConfigs(
        resource_type=ResourceType.TOPIC,
        name=name,
        edits=(ConfigEdit(key="retention.ms", value=value),),
    )


def refuse(cluster_id: str, name: str, *, at_ms: int = NOW_MS, client_id: str = "c") -> None:
    asked = from_wire(cluster_id, DeleteTopic(name=name), client_id=client_id)
    (outcome,) = services.propose(cluster_id=cluster_id, proposals=[asked], now_ms=at_ms)
    assert outcome.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_change_over_the_wire_says_who_what_and_from_where(cluster_id: str) -> None:
    (outcome,) = propose(cluster_id, from_wire(cluster_id, topic("orders")))

    entry = only(cluster_id)
    assert (entry.actor, entry.via, entry.client_id) == ("User:ANONYMOUS", "wire", "producer-1")
    assert (entry.address, entry.session, entry.made_at_ms) == ("192.0.2.9", "", NOW_MS)
    assert (entry.kind, entry.subject, entry.name) == ("create topic", "topic", "orders")
    assert (entry.outcome, entry.version) == ("NONE", outcome.version)
    assert entry.before == {}
    assert entry.after["partitions"] == "2"


def test_a_change_shows_before_and_after(cluster_id: str) -> None:
    propose(cluster_id, asking(topic("orders")))
    propose(cluster_id, asking(retention("orders")))
    propose(cluster_id, asking(retention("orders", "2000")))
    propose(cluster_id, asking(CreatePartitions(name="orders", count=3)))
    propose(cluster_id, asking(DeleteTopic(name="orders")))

    deleted, grown, altered, first, _ = audit.entries(cluster_id=cluster_id)

    assert (first.before, first.after) == ({}, {"retention.ms": "1000"})
    assert (altered.before, altered.after) == ({"retention.ms": "1000"}, {"retention.ms": "2000"})
    assert (grown.before["partitions"], grown.after["partitions"]) == ("2", "3")
    assert deleted.after == {}
    assert {**deleted.before, "partitions": "3", "retention.ms": "2000"} == deleted.before


def test_a_change_from_a_browser_carries_its_session(cluster_id: str) -> None:
    models.Cluster.objects.update(metadata_level=levels.KNOWN_LEVEL)
    plan = services.preview(cluster_id=cluster_id, actions=[topic("orders")], now_ms=NOW_MS)

    services.apply_plan(
        cluster_id=cluster_id, proposals=plan.proposals, origin=ALICE, now_ms=NOW_MS
    )

    entry = only(cluster_id)
    assert (entry.actor, entry.via, entry.session) == ("User:alice", "browser", "5e55")
    assert entry.address == "192.0.2.7"


def test_what_changes_nothing_is_not_in_it(cluster_id: str) -> None:
    again = asking(topic("orders"))
    propose(cluster_id, again)
    propose(cluster_id, again)
    propose(cluster_id, asking(topic("planned"), validate_only=True))
    propose(cluster_id, asking(DeleteTopic(name="gone"), validate_only=True))
    propose(cluster_id, from_wire(cluster_id, AllocateProducerIds()))

    assert only(cluster_id).name == "orders"


def test_a_refusal_is_written_with_its_reason(cluster_id: str) -> None:
    refuse(cluster_id, "gone")

    entry = only(cluster_id)
    assert entry.is_refused
    assert (entry.outcome, entry.name) == ("UNKNOWN_TOPIC_OR_PARTITION", "gone")
    assert entry.message == "there is no topic 'gone'"
    assert (entry.before, entry.after, entry.times) == ({}, {}, 1)


def test_a_refusal_that_is_repeated_is_counted(cluster_id: str) -> None:
    for _ in range(5):
        refuse(cluster_id, "gone")
    refuse(cluster_id, "gone", at_ms=NOW_MS + refusals.FLUSH_MS)

    entry = only(cluster_id)
    assert (entry.times, entry.last_at_ms) == (6, NOW_MS + refusals.FLUSH_MS)
    assert audit.verify(cluster_id=cluster_id).faults == ()


def test_counts_of_an_hour_that_has_ended_are_written(cluster_id: str) -> None:
    for _ in range(3):
        refuse(cluster_id, "gone")
    refuse(cluster_id, "other", at_ms=NOW_MS + refusals.HOUR_MS)

    assert [entry.times for entry in audit.entries(cluster_id=cluster_id)] == [1, 3]


def test_a_flood_of_refusals_does_not_grow_the_audit(
    cluster_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "MAX_ENTRIES", 5)
    for number in range(20):
        refuse(cluster_id, f"gone-{number}", client_id=f"c-{number}")
    refuse(cluster_id, "last", at_ms=NOW_MS + refusals.FLUSH_MS)

    entries = audit.entries(cluster_id=cluster_id)
    other = entries[0]
    assert len(entries) == 6
    assert (other.outcome, other.name, other.times) == ("several", "", 16)


def test_a_refusal_is_answered_where_it_cannot_be_written(
    cluster_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> list[int]:
        raise DatabaseError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(refusals, "_write", fail)
        refuse(cluster_id, "gone")
    refuse(cluster_id, "gone")

    assert only(cluster_id).name == "gone"


def test_names_from_outside_fit_into_a_row(cluster_id: str) -> None:
    asked = from_wire(cluster_id, DeleteTopic(name="x\0" * 5000), client_id="\0" * 5000)

    propose(cluster_id, asked)

    entry = only(cluster_id)
    assert entry.is_refused
    assert "\0" not in entry.name + entry.client_id


def test_a_plan_that_is_refused_does_nothing_at_all(cluster_id: str) -> None:
    asked = [asking(topic("one")), asking(DeleteTopic(name="gone")), asking(topic("two"))]

    outcomes = services.apply_plan(
        cluster_id=cluster_id, proposals=asked, origin=ALICE, now_ms=NOW_MS
    )

    assert [outcome.error for outcome in outcomes] == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    ]
    assert not models.Topic.objects.exists()
    assert all(entry.is_refused for entry in audit.entries(cluster_id=cluster_id))


def test_entries_are_found_by_who_what_and_when(cluster_id: str) -> None:
    propose(cluster_id, asking(topic("orders")))
    propose(cluster_id, from_wire(cluster_id, topic("payments")))
    refuse(cluster_id, "gone", at_ms=NOW_MS + 5000)

    def found(**fields: object) -> list[str]:
        which = audit.Filter(**fields)  # type: ignore[arg-type]
        return [entry.name for entry in audit.entries(cluster_id=cluster_id, which=which)]

    assert found() == ["gone", "payments", "orders"]
    assert found(actor="alice") == ["orders"]
    assert found(actor="producer-1") == ["payments"]
    assert found(name="PAY") == ["payments"]
    assert found(kind="delete topic") == ["gone"]
    assert found(is_refused=True) == ["gone"]
    assert found(since_ms=NOW_MS + 1) == ["gone"]
    assert found(until_ms=NOW_MS + 1) == ["payments", "orders"]
    assert found(until_ms=NOW_MS + 1, is_refused=False) == ["payments", "orders"]


def test_pages_go_on_where_the_one_before_ended(cluster_id: str) -> None:
    propose(cluster_id, *(asking(topic(f"t{number}")) for number in range(5)))

    first = audit.entries(cluster_id=cluster_id, limit=2)
    propose(cluster_id, asking(topic("newer")))
    second = audit.entries(cluster_id=cluster_id, below=first[-1].number, limit=2)

    assert [entry.name for entry in (*first, *second)] == ["t4", "t3", "t2", "t1"]
    assert len(list(audit.all_entries(cluster_id=cluster_id))) == 6


def test_a_chain_that_is_whole_is_found_to_be(cluster_id: str) -> None:
    propose(cluster_id, *(asking(topic(f"t{number}")) for number in range(5)))
    refuse(cluster_id, "gone")

    found = audit.verify(cluster_id=cluster_id)

    assert (found.first, found.last, found.faults) == (1, 6, ())
    assert found.digest == models.Cluster.objects.get().audit_digest


def change(**fields: object) -> None:
    models.AuditEntry.objects.filter(number=3).update(**fields)


@pytest.mark.parametrize("field", ["actor", "name", "outcome", "message", "address", "digest"])
def test_an_entry_that_was_changed_is_found(cluster_id: str, field: str) -> None:
    propose(cluster_id, *(asking(topic(f"t{number}")) for number in range(5)))

    change(**{field: "somebody else"})

    assert "entry 3 was changed" in audit.verify(cluster_id=cluster_id).faults


def test_values_that_were_changed_are_found(cluster_id: str) -> None:
    propose(cluster_id, *(asking(topic(f"t{number}")) for number in range(5)))

    change(after={"partitions": "1"})

    assert audit.verify(cluster_id=cluster_id).faults == ("entry 3 was changed",)


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        (1, "entries 1 to 1 are missing"),
        (3, "entries 3 to 3 are missing"),
        (5, "the newest entry is 4, the cluster's row says 5"),
    ],
)
def test_an_entry_that_was_taken_out_is_found(cluster_id: str, number: int, fault: str) -> None:
    propose(cluster_id, *(asking(topic(f"t{each}")) for each in range(5)))

    models.AuditEntry.objects.filter(number=number).delete()

    assert fault in audit.verify(cluster_id=cluster_id).faults


def test_a_chain_that_was_made_anew_differs_from_what_was_noted(cluster_id: str) -> None:
    propose(cluster_id, asking(topic("orders")))
    noted = only(cluster_id)

    good = audit.verify(cluster_id=cluster_id, noted=(1, noted.digest))
    other = audit.verify(cluster_id=cluster_id, noted=(1, "0" * 64))
    gone = audit.verify(cluster_id=cluster_id, noted=(2, noted.digest))

    assert good.faults == ()
    assert other.faults == ("entry 1 is another one than was noted",)
    assert gone.faults == ("entry 2, which was noted, is not kept",)


def test_old_entries_go_in_portions_and_the_chain_stays_whole(
    cluster_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "PRUNE_EVERY", 2)
    monkeypatch.setattr(writing, "PRUNE_AT_ONCE", 3)
    for number in range(4):
        propose(cluster_id, asking(topic(f"t{number}")))
    later = NOW_MS + writing.KEPT_MS + 1
    services.propose(cluster_id=cluster_id, proposals=[asking(topic("n4"))], now_ms=later)
    services.propose(cluster_id=cluster_id, proposals=[asking(topic("n5"))], now_ms=later)

    found = audit.verify(cluster_id=cluster_id)

    assert [entry.name for entry in audit.entries(cluster_id=cluster_id)] == ["n5", "n4", "t3"]
    assert (found.first, found.last, found.faults) == (4, 6, ())


def test_too_many_entries_go_as_well(cluster_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "PRUNE_EVERY", 1)
    monkeypatch.setattr(writing, "KEPT_ENTRIES", 2)

    for number in range(5):
        propose(cluster_id, asking(topic(f"t{number}")))

    assert [entry.name for entry in audit.entries(cluster_id=cluster_id)] == ["t4", "t3"]
    assert audit.verify(cluster_id=cluster_id).faults == ()


def verify_audit(*arguments: str) -> str:
    out = StringIO()
    call_command("verify_audit", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_shows_what_to_note_and_takes_it_back(cluster_id: str) -> None:
    propose(cluster_id, asking(topic("orders")))

    said = verify_audit()
    noted = said.splitlines()[-1]

    assert said.startswith("entries 1 to 1 are as they were written")
    assert verify_audit("--noted", noted) == said
    with pytest.raises(CommandError, match="another one than was noted"):
        verify_audit("--noted", f"1:{'0' * 64}")
    with pytest.raises(CommandError, match="is not NUMBER:DIGEST"):
        verify_audit("--noted", "1")
    with pytest.raises(CommandError, match="there is no cluster 'x'; there are: local"):
        verify_audit("--cluster", "x")


def test_written_plan_is_read_as_it_was(cluster_id: str) -> None:
    models.Cluster.objects.update(metadata_level=levels.KNOWN_LEVEL)
    plan = services.preview(cluster_id=cluster_id, actions=[topic("orders")], now_ms=NOW_MS)

    written = services.write_plan(plan)

    assert services.read_plan(written) == plan
    with pytest.raises(KafkaError, match="preview it again"):
        services.read_plan(written[:-1])
