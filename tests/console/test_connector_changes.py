"""Changes of connectors become entries of their cluster's audit, once each."""

import pytest

from brokers.controlplane import audit
from connectors import changes, models
from connectors.changes import By, Event
from console import connector_changes
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from tests.console import cluster_rows

BY = By(caller=Caller(kind=CallerKind.TOKEN, name="ci", rights=Rights()), address="192.0.2.7")


@pytest.fixture
def cluster_id() -> str:
    return cluster_rows.cluster().cluster_id


def tell(cluster_id: str, event: Event, after: dict[str, str]) -> None:
    changes.tell(
        event, by=BY, connector=models.Connector(cluster=cluster_id, name="c"), after=after
    )


def test_a_change_of_a_connector_is_an_entry_of_its_cluster(cluster_id: str) -> None:
    tell(cluster_id, Event.CREATED, {"tasks.max": "1"})
    tell("another-cluster-of-1234", Event.CREATED, {})
    tell(cluster_id, Event.OFFSETS_ALTERED, {})

    connector_changes.deliver()

    assert [
        (entry.kind, entry.subject, entry.name, entry.actor, entry.via, dict(entry.after))
        for entry in reversed(audit.entries(cluster_id=cluster_id))
    ] == [
        ("create connector", "connector", "c", "User:token.ci", "rest", {"tasks.max": "1"}),
        ("alter connector offsets", "connector", "c", "User:token.ci", "rest", {}),
    ]
    assert changes.waiting() == []
    assert not audit.verify(cluster_id=cluster_id).faults


@pytest.mark.parametrize(
    ("kind", "address", "via"),
    [
        (CallerKind.TOKEN, "192.0.2.7", "rest"),
        (CallerKind.USER, "192.0.2.7", "rest"),
        (CallerKind.SESSION, "192.0.2.7", "browser"),
        (CallerKind.USER, "", "host"),
    ],
)
def test_a_change_says_how_its_author_came(
    cluster_id: str, kind: CallerKind, address: str, via: str
) -> None:
    by = By(caller=Caller(kind=kind, name="ann", rights=Rights()), address=address)
    row = models.Connector(cluster=cluster_id, name="c")
    changes.tell(Event.PAUSED, by=by, connector=row)

    connector_changes.deliver()

    [entry] = audit.entries(cluster_id=cluster_id)
    assert entry.via == via


def test_every_event_has_its_kind() -> None:
    assert set(connector_changes.KINDS) == {event.value for event in Event}
