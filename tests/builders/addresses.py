"""Every address of the console with a value for each of its arguments. Needs the project set up."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.urls.converters import IntConverter, SlugConverter

from gateway.access.requirements import Audience, Requirement, requirement_of

# What an argument stands for, by its kind: a number of something, a verb, the name of something.
NUMBER: Final = "1"
VERB: Final = "delete"
NAME: Final = "orders"
# Arguments that only some values fit.
NAMED: Final = {"plugin": "samsa.datagen"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    name: str
    path: str
    pattern: URLPattern

    @property
    def requirement(self) -> Requirement | None:
        return requirement_of(self.pattern.callback)


def addresses() -> list[Address]:
    found = []
    for pattern in patterns(console()):
        kinds = pattern.pattern.converters.items()
        kwargs = {name: NAMED.get(name) or value_of(kind) for name, kind in kinds}
        assert pattern.name, f"{pattern} has a name"
        path = reverse(f"console:{pattern.name}", kwargs=kwargs)
        found.append(Address(name=pattern.name, path=path, pattern=pattern))
    return found


def needs(audience: Audience) -> list[Address]:
    return [
        address
        for address in addresses()
        if address.requirement and address.requirement.audience is audience
    ]


def console() -> URLResolver:
    """Return where pages are; beside them are the addresses of programs."""
    return next(
        entry
        for entry in get_resolver().url_patterns
        if isinstance(entry, URLResolver) and entry.namespace == "console"
    )


def patterns(of: URLResolver) -> Iterator[URLPattern]:
    for entry in of.url_patterns:
        if isinstance(entry, URLResolver):
            yield from patterns(entry)
        else:
            yield entry


def value_of(kind: object) -> str:
    if isinstance(kind, IntConverter):
        return NUMBER
    return VERB if isinstance(kind, SlugConverter) else NAME
