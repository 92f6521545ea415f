"""Finds the keys of a config's parts besides its connector: converters, transforms, predicates.

Determines their names. Independent of values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from connectors import framework_keys as keys
from connectors.sdk.configs import REQUIRED, Definition, Importance, Key, Kind, Width


class Described(Protocol):
    """Has a definition of keys: a class, or an entry of a table."""

    def definition(self) -> Definition: ...


Classes = Mapping[str, Described]


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """The available parts, by each name that a config may use."""

    converters: Classes
    header_converters: Classes
    transforms: Classes
    predicates: Classes
    # Yields the key with a part's class, and the problem of the part as a whole.
    problems: Callable[[Mapping[str, str]], Iterator[tuple[str, str]]] = lambda _: iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A key that a part adds. `inner` is the key as defined by the part."""

    key: Key
    inner: Key
    group: str | None
    order: int
    # The framework's value for a config without the key.
    implied: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chained:
    """A kind of named parts: `transforms=a` adds `transforms.a.type`, and so on."""

    prefix: str
    word: str
    classes: Classes


PREDICATE: Final = "predicate"
NEGATE: Final = "negate"
PLUGIN_VERSION: Final = "plugin.version"
CONVERTER_TYPE: Final = "converter.type"
# Keys of every transform, in addition to its own.
OF_TRANSFORMS: Final = (
    Key(
        name=PREDICATE,
        kind=Kind.STRING,
        default=None,
        importance=Importance.MEDIUM,
        doc="The name of a predicate: only records for which it is true are transformed.",
    ),
    Key(
        name=NEGATE,
        kind=Kind.BOOLEAN,
        default=False,
        importance=Importance.MEDIUM,
        doc="Whether those are transformed instead for which the predicate is false.",
    ),
)


def added(config: Mapping[str, Any], components: Components) -> Iterator[Added]:
    """Yield the keys that the parts of a config add to those of its connector."""
    for chained in chains(components):
        for name in names_in(config, chained.prefix):
            yield from _of_named(chained, name, config)
    for prefix in keys.CONVERTERS:
        yield from _of_converter(prefix, config, components)


def chains(components: Components) -> Sequence[Chained]:
    return (
        Chained(prefix=keys.TRANSFORMS, word="Transformation", classes=components.transforms),
        Chained(prefix=keys.PREDICATES, word="Predicate", classes=components.predicates),
    )


def names_in(config: Mapping[str, Any], key: str) -> list[str]:
    """Return the distinct names in a list of a config; at most MAX_ALIASES."""
    written = config.get(key)
    if not isinstance(written, str):
        return []
    names = [name for part in written.split(",") if (name := part.strip())]
    return list(dict.fromkeys(names))[: keys.MAX_ALIASES]


def converters_for(prefix: str, components: Components) -> Classes:
    is_header = prefix == keys.HEADER_CONVERTER
    return components.header_converters if is_header else components.converters


def _of_named(chained: Chained, name: str, config: Mapping[str, Any]) -> Iterator[Added]:
    prefix = f"{chained.prefix}.{name}."
    group = f"{chained.prefix.capitalize()}: {name}"
    type_key = Key(
        name="type",
        kind=Kind.CLASS,
        default=REQUIRED,
        importance=Importance.HIGH,
        doc=f"The class of the {chained.word.lower()} {name}.",
        width=Width.LONG,
        display_name=f"{chained.word} type for {name}",
    )
    version_key = Key(
        name=PLUGIN_VERSION,
        kind=Kind.STRING,
        default=None,
        importance=Importance.HIGH,
        doc="Ignored: there is one version of each.",
        width=Width.LONG,
        display_name=f"{chained.word} version for {name}",
    )
    found = chained.classes.get(str(config.get(f"{prefix}type", "")).strip())
    own: list[Key] = []
    if found is not None:
        own = [*found.definition()]
        if chained.prefix == keys.TRANSFORMS:
            own += [key for key in OF_TRANSFORMS if key.name not in {one.name for one in own}]
    inner = [type_key, version_key, *sorted(own, key=_rank)]
    for order, key in enumerate(inner):
        yield Added(
            key=replace(key, name=f"{prefix}{key.name}", display_name=key.display_name or key.name),
            inner=key,
            group=group,
            order=order,
        )


def _of_converter(
    prefix: str, config: Mapping[str, Any], components: Components
) -> Iterator[Added]:
    """Yield the keys of a converter that a config names; an unnamed one keeps defaults."""
    found = converters_for(prefix, components).get(str(config.get(prefix, "")).strip())
    if found is None:
        return
    orders: dict[str | None, int] = {}
    for key in found.definition():
        if key.is_internal:
            continue
        orders[key.group] = orders.get(key.group, -1) + 1
        yield Added(
            key=replace(
                key, name=f"{prefix}.{key.name}", display_name=key.display_name or key.name
            ),
            inner=key,
            group=key.group,
            order=-1 if key.group is None else orders[key.group],
            implied=prefix.partition(".")[0] if key.name == CONVERTER_TYPE else None,
        )


def _rank(key: Key) -> tuple[bool, int, str]:
    """Return the rank of a key within its part: required ones first, as in Kafka."""
    return not key.is_required, list(Importance).index(key.importance), key.name
