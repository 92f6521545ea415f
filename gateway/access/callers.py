"""Who calls an interface for programs: a token, a console user, or the console's own page.

Pure values. The one place that maps a caller to a principal of Kafka, so that the brokers' access
rights and quotas can bind it.
"""

from dataclasses import dataclass, field
from enum import Enum

from gateway.access.grants import Decision, Resource, Rights, decide
from gateway.access.operations import Kind, Operation


class CallerKind(Enum):
    TOKEN = "token"  # noqa: S105 - a word
    USER = "user"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody who has shown who they are. `number` is the token's; a user has none."""

    kind: CallerKind
    name: str
    rights: Rights
    number: int | None = None
    # By which it is found out again that this caller is still known; nothing to show or compare.
    proof: object = field(default=None, repr=False, compare=False)

    @property
    def principal(self) -> str:
        """Return the principal of Kafka that stands for this caller."""
        return f"User:token.{self.name}" if self.kind is CallerKind.TOKEN else f"User:{self.name}"

    @property
    def key(self) -> str:
        """Return what this caller's limits and traffic are counted under."""
        return f"{self.kind.value}:{self.name}"

    def decide(self, operation: Operation, kind: Kind, cluster: str, name: str = "") -> Decision:
        return decide(self.rights, operation, Resource(kind=kind, cluster=cluster, name=name))
