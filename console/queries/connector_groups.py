"""Tells which groups are those of connectors: what to do about such a group, its connector says."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from connectors import selectors
from console.queries.connector_states import (
    IN_TROUBLE,
    REQUESTED,
    STATES,
    cause_of,
    state_of,
)
from console.queries.lag import Mark
from console.queries.links import link
from gateway.access.grants import Rights
from gateway.access.operations import Kind, Operation
from gateway.kafka import shown_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The connector of a group, as far as the user may see it."""

    name: str  # for display
    mark: Mark
    # What keeps it from its work; empty if nothing does.
    cause: str
    link: str
    # It has a need of its own, or was paused or stopped by a user. One that waits for a worker has
    # none, and only its lag says that this is too long.
    explains_lag: bool


def owners_of(cluster: str, groups: Iterable[str], rights: Rights) -> Mapping[str, Owner]:
    """Return the connectors of those groups that have one, by group."""
    names = rights.names(Operation.VIEW, cluster=cluster, kind=Kind.CONNECTOR)
    found = selectors.connectors_of_groups(cluster, groups, reader=rights)
    return {
        group: _owner(cluster, status) for group, status in found.items() if status.name in names
    }


def not_of_connectors(cluster: str, groups: Iterable[str]) -> list[str]:
    """Return the groups that belong to no connector, also to none that a user may not see."""
    listed = list(groups)
    owned = selectors.connectors_of_groups(cluster, listed, reader=Rights())
    return [group for group in listed if group not in owned]


def _owner(cluster: str, status: selectors.Status) -> Owner:
    state = state_of(status)
    return Owner(
        name=shown_names.shown(status.name),
        mark=STATES[state],
        cause=cause_of(status),
        link=link("connector", cluster, status.name),
        explains_lag=state in IN_TROUBLE or state in REQUESTED,
    )
