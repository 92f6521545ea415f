"""Declares what a view requires of its caller, as a decorator.

`middleware.AccessGate` enforces the declaration and refuses a view without one. So nothing can be
forgotten: an undeclared view serves no one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, TypeVar

from django.http import HttpRequest, HttpResponseBase

from gateway.access.grants import Resource
from gateway.access.operations import Operation

View = TypeVar("View", bound=Callable[..., HttpResponseBase])
ResourceOf = Callable[[HttpRequest, Mapping[str, Any]], Resource]
ATTRIBUTE: Final = "access_requirement"


class Audience(Enum):
    PUBLIC = "public"
    SIGNED_IN = "signed in"
    GRANTED = "granted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Who may request a view."""

    audience: Audience
    operation: Operation | None = None
    # The target of the operation; without it, a right on anything is enough, and the view shows
    # only what `rights_of` allows.
    resource: ResourceOf | None = None
    # Open to users with a password set by another person, who can open nothing else.
    is_open_before_change: bool = False
    # False for addresses that a page requests by itself, such as a stream of events.
    is_activity: bool = True


def public(view: View) -> View:
    """Admit everyone, without signing in."""
    return _declare(view, Requirement(audience=Audience.PUBLIC))


def signed_in(view: View) -> View:
    """Admit every signed-in user."""
    return _declare(view, Requirement(audience=Audience.SIGNED_IN))


def open_before_change(view: View) -> View:
    """Admit signed-in users who still have to change a password set by another person."""
    found = requirement_of(view)
    assert found is not None, "listed above signed_in"
    return _declare(view, replace(found, is_open_before_change=True))


def requires(
    operation: Operation, *, resource: ResourceOf | None = None, is_activity: bool = True
) -> Callable[[View], View]:
    """Admit users with a right to an operation, on the resource of the request or on any."""
    requirement = Requirement(
        audience=Audience.GRANTED,
        operation=operation,
        resource=resource,
        is_activity=is_activity,
    )
    return lambda view: _declare(view, requirement)


def requirement_of(view: Callable[..., object]) -> Requirement | None:
    """Return the declared requirement of a view; None if it declares none."""
    found = getattr(view, ATTRIBUTE, None)
    assert found is None or isinstance(found, Requirement), "only decorators of this module set it"
    return found


def _declare(view: View, requirement: Requirement) -> View:
    setattr(view, ATTRIBUTE, requirement)
    return view
