"""Declares what a view requires of its caller, as a decorator.

A decorator only declares; `middleware.AccessGate` enforces, and refuses a view without one. So
nothing can be forgotten: an address that declares nothing serves nobody.
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
    """Who may ask for an address."""

    audience: Audience
    operation: Operation | None = None
    # What the operation is asked for; without it, being allowed on anything is enough, and the view
    # shows only what `rights_of` allows.
    resource: ResourceOf | None = None
    # Open to users whose password somebody else made, who reach nothing else.
    is_open_before_change: bool = False
    # False for addresses that a page asks for by itself, as a stream of events.
    is_activity: bool = True


def public(view: View) -> View:
    """Let everybody in, without signing in."""
    return _declare(view, Requirement(audience=Audience.PUBLIC))


def signed_in(view: View) -> View:
    """Let in whoever is signed in."""
    return _declare(view, Requirement(audience=Audience.SIGNED_IN))


def open_before_change(view: View) -> View:
    """Let in those who are signed in and still have to change a password that was given to them."""
    found = requirement_of(view)
    assert found is not None, "stands above signed_in"
    return _declare(view, replace(found, is_open_before_change=True))


def requires(
    operation: Operation, *, resource: ResourceOf | None = None, is_activity: bool = True
) -> Callable[[View], View]:
    """Let in whoever may do an operation, on the resource that the request names or on any."""
    requirement = Requirement(
        audience=Audience.GRANTED,
        operation=operation,
        resource=resource,
        is_activity=is_activity,
    )
    return lambda view: _declare(view, requirement)


def requirement_of(view: Callable[..., object]) -> Requirement | None:
    """Return what a view declares; None where it declares nothing."""
    found = getattr(view, ATTRIBUTE, None)
    assert found is None or isinstance(found, Requirement), "only decorators of this module set it"
    return found


def _declare(view: View, requirement: Requirement) -> View:
    setattr(view, ATTRIBUTE, requirement)
    return view
