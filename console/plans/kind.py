"""Defines what the page of plans needs of one kind of plan; adapters give it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from brokers.cluster.origins import Origin
from connectors.changes import By
from console.plans.previews import Outcome, Preview
from gateway.access.grants import Resource, Rights, decide
from gateway.access.operations import Kind as ResourceKind
from gateway.access.operations import Operation

T = TypeVar("T")

BAD_REQUEST = 400
FORBIDDEN = 403


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """The user who makes and applies a plan; `site` is the address of the console."""

    rights: Rights
    by: By
    origin: Origin
    now_ms: int
    site: str

    @property
    def name(self) -> str:
        return self.by.caller.name

    @property
    def holder(self) -> str:
        """Return the key under which a plan is sealed for this user."""
        return self.by.caller.key

    def lacks(self, operation: Operation, cluster: str, kind: ResourceKind, name: str = "") -> str:
        """Return a sentence on a right that is missing; empty if it is there."""
        resource = Resource(kind=kind, cluster=cluster, name=name)
        decision = decide(self.rights, operation, resource)
        return "" if decision.is_allowed else decision.reason


class CannotPlan(Exception):
    """No plan is possible, or none may be seen; the arguments are those of an error page."""

    def __init__(self, title: str, next_step: str, *, status: int = BAD_REQUEST) -> None:
        super().__init__(title)
        self.title, self.next_step, self.status = title, next_step, status


class NotApplied(Exception):
    """Nothing was done for a reason that may pass; the text is shown above the plan."""

    def __init__(self, text: str, *, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T]):
    """One kind of plan. `name` is in its seals, and `subject` is the word for what it changes."""

    name: str
    subject: str
    plan: type[T]
    # The plan as its page shows it, with one page of a long table. Raises CannotPlan.
    preview: Callable[[Author, T, int], Preview]
    # A sentence on the first missing right; empty if none is missing.
    deny: Callable[[Author, T], str]
    can_apply: Callable[[T], bool]
    # Raises NotApplied, and CannotPlan.
    apply: Callable[[Author, T], Outcome]
    # A new plan of the same change, or the address of the form that makes it. Raises CannotPlan.
    again: Callable[[Author, T], T | str]
    # The name that has to be typed first; empty if none has to be.
    confirms: Callable[[T], str] = lambda _plan: ""
    # The plan as a CSV file.
    file: Callable[[T], str] = lambda _plan: ""
