"""Decides whether a caller may make a call: one place for views and bare calls.

`callers` has found before who calls, and counted the call.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.access.callers import Caller
from gateway.access.operations import Kind, Operation
from gateway.rest.codes import ApiError, Code

# The parameters of paths that name the cluster.
CLUSTERS: Final = ("cluster_id", "cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """An operation that a caller needs the right to, on a resource of the path."""

    operation: Operation
    kind: Kind
    # The parameter of the path that names the resource; "" if it has no name.
    name: str = ""


def require_cluster(cluster_id: str, parameters: Mapping[str, str]) -> None:
    """Raise ApiError if a path names another cluster than ours."""
    for name in CLUSTERS:
        asked = parameters.get(name, cluster_id)
        if asked != cluster_id:
            raise ApiError(Code.NOT_FOUND, f"Cluster {asked} cannot be found.")


def require_rights(
    caller: Caller, cluster_id: str, rights: Iterable[Right], parameters: Mapping[str, str]
) -> None:
    """Raise ApiError if a caller lacks one of the rights of a route."""
    for right in rights:
        name = parameters[right.name] if right.name else ""
        require(caller, cluster_id, right.operation, right.kind, name)


def require(
    caller: Caller, cluster_id: str, operation: Operation, kind: Kind, name: str = ""
) -> None:
    """Raise ApiError if a caller may not do this; the message names the missing right."""
    cluster = "" if kind is Kind.CONSOLE else cluster_id
    decision = caller.decide(operation, kind, cluster, name)
    if not decision.is_allowed:
        raise ApiError(Code.NOT_ALLOWED, decision.reason)
