"""Translates the scopes that users choose for a token into rights. Pure.

A scope groups rights that only make sense together: a program that reads has to find its topic.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from gateway.access.grants import ANY, FULL_ADMIN, MAX_PATTERN_CHARS, Grant
from gateway.access.operations import Kind, Operation


class Scope(Enum):
    READ = "read"
    WRITE = "write"
    CREATE = "create"
    GROUP = "group"
    CONNECTOR = "connector"
    SECRET = "secret"  # noqa: S105 - a word
    FILE = "file"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The operations of a scope, their kind of resource, and a sentence for the granting user."""

    kind: Kind | None
    operations: tuple[Operation, ...]
    sentence: str


SCOPES: Final = {
    Scope.READ: Row(
        kind=Kind.TOPIC,
        operations=(Operation.VIEW, Operation.READ_PAYLOADS),
        sentence="Sees topics of these names and reads their records.",
    ),
    Scope.WRITE: Row(
        kind=Kind.TOPIC,
        operations=(Operation.VIEW, Operation.PRODUCE),
        sentence="Sees topics of these names and writes records.",
    ),
    Scope.CREATE: Row(
        kind=Kind.TOPIC,
        operations=(Operation.VIEW, Operation.CREATE_TOPICS),
        sentence="Creates topics of these names, also by writing to one that is missing.",
    ),
    Scope.GROUP: Row(
        kind=Kind.GROUP,
        operations=(Operation.VIEW, Operation.RESET_GROUPS),
        sentence="Reads as a member of groups of these names, and commits their offsets.",
    ),
    Scope.CONNECTOR: Row(
        kind=Kind.CONNECTOR,
        operations=(
            Operation.VIEW,
            Operation.CREATE_CONNECTORS,
            Operation.ALTER_CONNECTORS,
            Operation.OPERATE_CONNECTORS,
            Operation.DELETE_CONNECTORS,
        ),
        sentence="Makes, alters, runs and deletes connectors of these names.",
    ),
    Scope.SECRET: Row(
        kind=Kind.SECRET,
        operations=(Operation.USE_SECRETS,),
        sentence="Refers to secrets of these names in configs of connectors.",
    ),
    Scope.FILE: Row(
        kind=Kind.FILE,
        operations=(Operation.READ_FILES, Operation.WRITE_FILES),
        sentence="Has connectors read and write files of these names.",
    ),
    Scope.ADMIN: Row(kind=None, operations=(), sentence="Does everything."),
}
# Scopes that take names.
NAMED: Final = tuple(scope for scope, row in SCOPES.items() if row.kind is not None)


def grants_of(scope: Scope, pattern: str = ANY, *, cluster: str = ANY) -> tuple[Grant, ...]:
    """Return the rights of a scope on the names of a pattern."""
    row = SCOPES[scope]
    if row.kind is None:
        return (FULL_ADMIN,)
    return tuple(
        Grant(operation=operation, cluster=cluster, kind=row.kind, pattern=pattern)
        for operation in row.operations
    )


def option_of(operation: Operation, kind: Kind, name: str) -> str:
    """Return the option of `./samsa tokens create` that gives a right on a name, for a shell."""
    for scope in NAMED:
        row = SCOPES[scope]
        if row.kind is kind and operation in row.operations and name:
            return f"--{scope.value} {shlex.quote(name[:MAX_PATTERN_CHARS])}"
    return f"--{Scope.ADMIN.value}"


def together(grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """Return rights without duplicates, in their order."""
    return tuple(dict.fromkeys(grants))
