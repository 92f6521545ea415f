"""Defines the callers of programmatic interfaces: tokens, users, pages, and the owner of the home.

Pure values. The only place that maps a caller to a Kafka principal, so that the brokers' ACLs and
quotas apply to it.
"""

from dataclasses import dataclass, field
from enum import Enum

from gateway.access.grants import FULL_ADMIN, Decision, Resource, Rights, decide, refused
from gateway.access.operations import Kind, Operation
from gateway.access.token_scopes import option_of


class CallerKind(Enum):
    TOKEN = "token"  # noqa: S105 - a word
    USER = "user"
    SESSION = "session"
    # A user of this machine who owns the files of the home: rights protect nothing from them.
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An authenticated caller. `number` is the token's; a user has none."""

    kind: CallerKind
    name: str
    rights: Rights
    number: int | None = None
    # Used to check again that the caller is still valid; neither shown nor compared.
    proof: object = field(default=None, repr=False, compare=False)

    @property
    def principal(self) -> str:
        """Return the Kafka principal of this caller."""
        if self.kind is CallerKind.HOST:
            # No principal of Kafka: as commands on the host are named.
            return self.key
        return f"User:token.{self.name}" if self.kind is CallerKind.TOKEN else f"User:{self.name}"

    @property
    def key(self) -> str:
        """Return the key under which this caller's limits and traffic are counted."""
        return f"{self.kind.value}:{self.name}"

    def decide(self, operation: Operation, kind: Kind, cluster: str, name: str = "") -> Decision:
        resource = Resource(kind=kind, cluster=cluster, name=name)
        decision = decide(self.rights, operation, resource)
        if decision.is_allowed or self.kind is not CallerKind.TOKEN:
            return decision
        remedy = self.remedy(operation, kind, name)
        return refused(operation, resource, remedy=f"{remedy[0].upper()}{remedy[1:]}.")

    def remedy(self, operation: Operation, kind: Kind, name: str) -> str:
        """Return what gives a missing right to this caller: a program needs another token."""
        if self.kind is not CallerKind.TOKEN:
            return "have an admin give you that right on the Users page"
        options = option_of(operation, kind, name)
        return (
            f"create a token with that right, by `./samsa tokens create NAME {options}` and the"
            f" options for the rights that token {self.name} has"
        )


def of_host(user: str) -> Caller:
    """Return the caller for a user of this machine who owns the home."""
    return Caller(kind=CallerKind.HOST, name=user, rights=Rights([FULL_ADMIN]))
