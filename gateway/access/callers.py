"""Defines the callers of programmatic interfaces: a token, a console user, or a console page.

Pure values. The only place that maps a caller to a Kafka principal, so that the brokers' ACLs and
quotas apply to it.
"""

from dataclasses import dataclass, field
from enum import Enum

from gateway.access.grants import Decision, Resource, Rights, decide, refused
from gateway.access.operations import Kind, Operation
from gateway.access.token_scopes import option_of


class CallerKind(Enum):
    TOKEN = "token"  # noqa: S105 - a word
    USER = "user"
    SESSION = "session"


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
            f"make a token that may, with `./samsa tokens create NAME {options}` and the options"
            f" for what token {self.name} may already"
        )
