"""Validates converters, transforms and predicates beyond single keys.

It creates them, as a task would, and discards them. Parts with an invalid key are skipped: that
key has its own error.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from connectors.runtime import converters, predicates, transforms
from connectors.runtime.chain import names_in
from connectors.runtime.settings import parse_all
from connectors.runtime.task_settings import below
from connectors.sdk.errors import ConfigError

_CONVERTERS: Final = {
    "key.converter": converters.CLASSES,
    "value.converter": converters.CLASSES,
    "header.converter": converters.HEADER_CLASSES,
}
_CHAINED: Final[Mapping[str, Mapping[str, Any]]] = {
    "transforms": transforms.CLASSES,
    "predicates": predicates.CLASSES,
}


def problems(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the key with a part's class, and the problem of the part."""
    for key, classes in _CONVERTERS.items():
        props = {"converter.type": key.partition(".")[0], **below(config, f"{key}.")}
        yield from _problem(key, classes.get((config.get(key) or "").strip()), props)
    for kind, parts in _CHAINED.items():
        for name in _names(config, kind):
            prefix = f"{kind}.{name}."
            found = parts.get((config.get(f"{prefix}type") or "").strip())
            yield from _problem(f"{prefix}type", found, below(config, prefix))


def _names(config: Mapping[str, str], kind: str) -> list[str]:
    try:
        return names_in(config, kind)
    except ConfigError:
        return []


def _problem(key: str, found: Any, props: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if found is None:
        return
    try:
        parsed = parse_all(found.definition(), props)
    except ConfigError:
        return
    try:
        found.build(parsed)
    except ConfigError as error:
        yield key, str(error)
