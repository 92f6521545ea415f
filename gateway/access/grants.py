"""Decides whether a user may perform an operation, from their grants.

Pure: must not know Django, users or pages. Grants are compiled into `Rights` once per request;
after that a check is a lookup, and a list of thousands of names is filtered without a query.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.access.operations import OPERATIONS, ROLES, Kind, Operation, Role

ANY: Final = "*"
# The length limit of a topic name; groups and connectors on pages need no longer pattern.
MAX_PATTERN_CHARS: Final = 249
# The id of a cluster: 16 bytes in base64.
MAX_CLUSTER_CHARS: Final = 22
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class BadGrant(ValueError):
    """An invalid grant; the text says what is wrong with it and what is valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The target of an operation. The console has no cluster; a cluster has no name."""

    kind: Kind
    cluster: str = ""
    name: str = ""

    def __str__(self) -> str:
        if self.kind is Kind.CONSOLE:
            return "this console"
        named = f"{self.kind.value} {self.name}" if self.name else ""
        # A request may name no cluster.
        cluster = f"cluster {self.cluster}" if self.cluster else "the cluster"
        return f"{named} of {cluster}" if named else cluster


CONSOLE: Final = Resource(kind=Kind.CONSOLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A role or one operation, on one cluster or all, for one kind or all, by a name pattern.

    A pattern is a name, or a prefix followed by `*`.
    """

    role: Role | None = None
    operation: Operation | None = None
    cluster: str = ANY
    kind: Kind | None = None
    pattern: str = ANY

    def __post_init__(self) -> None:
        assert (self.role is None) != (self.operation is None), "a role or an operation"

    @property
    def operations(self) -> frozenset[Operation]:
        if self.role is not None:
            return ROLES[self.role].operations
        assert self.operation is not None, "checked when it was made"
        return frozenset({self.operation})

    @property
    def is_unlimited(self) -> bool:
        return self.cluster == ANY and self.kind is None and self.pattern == ANY


# The grant that the last administrator keeps, and that leads to every other right.
FULL_ADMIN: Final = Grant(role=Role.ADMIN)


def check(grant: Grant) -> None:
    """Raise BadGrant for a grant that could never allow anything, or reads as another one."""
    cluster, pattern = grant.cluster, grant.pattern
    if not cluster or len(cluster) > MAX_CLUSTER_CHARS or (ANY in cluster and cluster != ANY):
        raise BadGrant(f"“{cluster[:60]}” is not a cluster: give the id of one, or * for all")
    if not pattern or len(pattern) > MAX_PATTERN_CHARS:
        raise BadGrant(
            f"the pattern has {len(pattern)} characters: give 1 to {MAX_PATTERN_CHARS}, or * for"
            " every name"
        )
    if ANY in pattern[:-1] or CONTROL.search(pattern):
        raise BadGrant(
            f"“{CONTROL.sub('?', pattern)[:60]}” is not a pattern: give a whole name, or a prefix "
            "followed by one *"
        )
    if grant.kind in {None, Kind.CLUSTER, Kind.CONSOLE} and pattern != ANY:
        raise BadGrant(
            f"the pattern “{pattern[:60]}” needs a kind that has names: topic, group, connector,"
            " secret or file"
        )
    kinds = {kind for operation in grant.operations for kind in OPERATIONS[operation].kinds}
    if grant.kind is not None and grant.kind not in kinds:
        what = grant.role or grant.operation
        assert what is not None, "checked when it was made"
        raise BadGrant(f"{what.value} allows nothing on a {grant.kind.value}: give another kind")
    if cluster != ANY and (grant.kind is Kind.CONSOLE or kinds == {Kind.CONSOLE}):
        raise BadGrant("rights on the console hold for all clusters: give * as the cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """A set of names, by whole names and prefixes; hashable, so that it can be part of a key."""

    is_all: bool = False
    literals: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return self.is_all or name in self.literals or name.startswith(self.prefixes)

    def __bool__(self) -> bool:
        return self.is_all or bool(self.literals) or bool(self.prefixes)

    def among(self, names: Iterable[str]) -> list[str]:
        """Return the given names that are in the set, in their order."""
        if self.is_all:
            return list(names)
        literals, prefixes = self.literals, self.prefixes
        return [name for name in names if name in literals or name.startswith(prefixes)]


NOTHING: Final = Names()
EVERYTHING: Final = Names(is_all=True)


def names_of(patterns: Iterable[str]) -> Names:
    """Return the set of names that patterns match together."""
    given = set(patterns)
    if ANY in given:
        return EVERYTHING
    return Names(
        literals=frozenset(pattern for pattern in given if not pattern.endswith(ANY)),
        prefixes=tuple(sorted(pattern[:-1] for pattern in given if pattern.endswith(ANY))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether an operation is allowed; if not, a sentence names what is missing."""

    is_allowed: bool
    reason: str = ""


ALLOWED: Final = Decision(is_allowed=True)


class Rights:
    """All grants of a user, compiled. Immutable."""

    __slots__ = ("grants", "patterns")

    def __init__(self, grants: Iterable[Grant] = ()) -> None:
        self.grants: Final = tuple(grants)
        # (operation, kind) -> cluster, or * -> patterns.
        patterns: dict[tuple[Operation, Kind], dict[str, set[str]]] = {}
        for grant in self.grants:
            for operation in grant.operations:
                kinds = OPERATIONS[operation].kinds
                for kind in kinds if grant.kind is None else kinds & {grant.kind}:
                    if kind is Kind.CONSOLE and grant.cluster != ANY:
                        continue
                    of_clusters = patterns.setdefault((operation, kind), {})
                    of_clusters.setdefault(grant.cluster, set()).add(grant.pattern)
        self.patterns: Final = patterns

    def names(self, operation: Operation, *, cluster: str, kind: Kind) -> Names:
        """Return the names of a kind on which an operation is allowed in a cluster."""
        of_clusters = self.patterns.get((operation, kind), {})
        return names_of(of_clusters.get(ANY, set()) | of_clusters.get(cluster, set()))

    def allows(self, operation: Operation, resource: Resource) -> bool:
        assert resource.kind in OPERATIONS[operation].kinds, (
            f"{operation.value} does not apply to a {resource.kind.value}"
        )
        return resource.name in self.names(operation, cluster=resource.cluster, kind=resource.kind)

    def allows_somewhere(self, operation: Operation, *, cluster: str | None = None) -> bool:
        """Tell whether an operation is allowed on anything, or on anything in one cluster."""
        return any(
            cluster is None or ANY in of_clusters or cluster in of_clusters
            for (granted, _), of_clusters in self.patterns.items()
            if granted is operation
        )


def may_view_all(rights: Rights, cluster: str) -> bool:
    """Tell whether a user may view a cluster with all that is in it, and so its totals."""
    return rights.allows(Operation.VIEW, Resource(kind=Kind.CLUSTER, cluster=cluster)) and all(
        rights.names(Operation.VIEW, cluster=cluster, kind=kind).is_all
        for kind in (Kind.TOPIC, Kind.GROUP)
    )


def common(first: Rights, second: Rights) -> Rights:
    """Return the rights that both allow: a token never has more rights than its owner."""
    return Rights(
        Grant(operation=operation, cluster=cluster, kind=kind, pattern=pattern)
        for operation, kind in first.patterns.keys() & second.patterns.keys()
        for cluster, pattern in _common_patterns(
            first.patterns[operation, kind], second.patterns[operation, kind]
        )
    )


def _common_patterns(
    first: Mapping[str, set[str]], second: Mapping[str, set[str]]
) -> set[tuple[str, str]]:
    """Return pairs of a cluster and a pattern that both sets cover."""
    found = set()
    for cluster, patterns in first.items():
        for other_cluster, other_patterns in second.items():
            both = narrower(cluster, other_cluster)
            if both is not None:
                names = (narrower(one, other) for one in patterns for other in other_patterns)
                found |= {(both, name) for name in names if name is not None}
    return found


def narrower(one: str, other: str) -> str | None:
    """Return the pattern of names that match both; None if no name does."""
    for wide, narrow in ((one, other), (other, one)):
        if wide == narrow or (wide.endswith(ANY) and narrow.startswith(wide[:-1])):
            return narrow
    return None


def decide(rights: Rights, operation: Operation, resource: Resource | None = None) -> Decision:
    """Decide whether an operation is allowed on a resource; without one, on anything at all."""
    is_allowed = (
        rights.allows_somewhere(operation)
        if resource is None
        else rights.allows(operation, resource)
    )
    if is_allowed:
        return ALLOWED
    roles = [role.value for role in Role if operation in ROLES[role].operations]
    listed = roles[0] if len(roles) == 1 else f"{', '.join(roles[:-1])} and {roles[-1]}"
    include = "role {} includes it" if len(roles) == 1 else "roles {} include it"
    return refused(
        operation,
        resource,
        remedy=f"The {include.format(listed)}; an admin can give you that role, or this right"
        " alone, on the Users page.",
    )


def refused(operation: Operation, resource: Resource | None, *, remedy: str) -> Decision:
    """Return a refusal that ends with what to do about it."""
    on = "" if resource is None or resource.kind is Kind.CONSOLE else f" on {resource}"
    return Decision(
        is_allowed=False, reason=f"You may not {OPERATIONS[operation].verb}{on}. {remedy}"
    )
