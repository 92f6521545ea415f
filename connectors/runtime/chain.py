"""Applies the transforms of a connector in order, each to the records that its predicate selects.

Built from the connector's config: `transforms=a,b`, `transforms.a.type`, `transforms.a.predicate`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from connectors.runtime import predicates, transforms
from connectors.runtime.predicates import Test
from connectors.runtime.transforms.sides import Apply
from connectors.sdk.checks import COMMA
from connectors.sdk.configs import Definition, Importance, Key, Kind
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.records import Record

# Each costs microseconds per record; configs by hand have far fewer.
MAX_STEPS: Final = 100
_PREDICATE_KEYS: Final = (
    Key(
        name="predicate",
        kind=Kind.STRING,
        default=None,
        importance=Importance.MEDIUM,
        doc="The predicate that says which records are transformed.",
    ),
    Key(
        name="negate",
        kind=Kind.BOOLEAN,
        default=False,
        importance=Importance.MEDIUM,
        doc="Whether those are transformed instead for which the predicate is false.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    name: str
    class_name: str
    apply: Apply
    test: Test | None
    is_negated: bool


class TransformFailed(DataError):
    """A transform failed on a record; `class_name` is its class in Java."""

    def __init__(self, step: _Step, cause: Exception) -> None:
        text = str(cause) or type(cause).__name__
        super().__init__(f"transform {step.name} ({step.class_name}): {text}")
        self.class_name = step.class_name


class Chain:
    """All transforms of a connector."""

    def __init__(self, steps: tuple[_Step, ...]) -> None:
        self._steps = steps

    def apply(self, record: Record) -> Record | None:
        """Return the record after the last transform; None if a transform drops it.

        Raises TransformFailed if one of them cannot process it.
        """
        current: Record | None = record
        for step in self._steps:
            if current is None:
                return None
            try:
                if step.test is None or step.test(current) is not step.is_negated:
                    current = step.apply(current)
            # An unexpected value is bad data to a transform, as in Connect, which tolerates any
            # exception of one.
            except Exception as error:
                raise TransformFailed(step, error) from error
        return current


def make(config: Mapping[str, str]) -> Chain:
    """Return the transforms of a connector's config; ConfigError names the invalid key."""
    tests = {name: _test(name, config) for name in names_in(config, "predicates")}
    return Chain(tuple(_step(name, config, tests) for name in names_in(config, "transforms")))


def names_in(config: Mapping[str, str], key: str) -> list[str]:
    """Return the names in a list of a config."""
    text = (config.get(key) or "").strip()
    names = [name for name in COMMA.split(text) if name]
    if len(names) > MAX_STEPS:
        raise ConfigError(f"{key} has {len(names)} names, and {MAX_STEPS} are allowed")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"{key} has the name {twice[0]} twice: give each its own")
    return names


def definition(config: Mapping[str, str]) -> Definition:
    """Return the keys that the transforms and predicates of a config add to its connector's."""
    keys: list[Key] = []
    for kind, classes in _CLASSES.items():
        for name in names_in(config, kind):
            prefix = f"{kind}.{name}."
            type_key = Key(
                name="type",
                kind=Kind.CLASS,
                importance=Importance.HIGH,
                doc=f"The class of {name}.",
            )
            found = classes.get(config.get(f"{prefix}type", ""))
            own = tuple(found.definition()) if found else ()
            added = _PREDICATE_KEYS if kind == "transforms" else ()
            keys += [replace(key, name=prefix + key.name) for key in (type_key, *own, *added)]
    return Definition(tuple(keys))


_CLASSES: Final[Mapping[str, Mapping[str, Any]]] = {
    "transforms": transforms.CLASSES,
    "predicates": predicates.CLASSES,
}


def _test(name: str, config: Mapping[str, str]) -> Test:
    found = _class_of("predicates", name, config)
    return _made(found, "predicates", name, config)  # type: ignore[no-any-return]


def _step(name: str, config: Mapping[str, str], tests: Mapping[str, Test]) -> _Step:
    found = _class_of("transforms", name, config)
    predicate = config.get(f"transforms.{name}.predicate")
    if predicate and predicate not in tests:
        known = ", ".join(tests) or "none"
        raise ConfigError(
            f"transforms.{name}.predicate is {predicate}, and predicates names {known}"
        )
    return _Step(
        name=name,
        class_name=found.name,
        apply=_made(found, "transforms", name, config),
        test=tests[predicate] if predicate else None,
        is_negated=config.get(f"transforms.{name}.negate", "").strip().lower() == "true",
    )


def _class_of(kind: str, name: str, config: Mapping[str, str]) -> Any:
    key = f"{kind}.{name}.type"
    class_name = (config.get(key) or "").strip()
    found = _CLASSES[kind].get(class_name)
    if found is None:
        known = ", ".join(sorted(one for one in _CLASSES[kind] if "." not in one))
        what = f"is {class_name}, which is not one" if class_name else "is not set"
        raise ConfigError(f"{key} {what}: there are {known}")
    return found


def _made(found: Any, kind: str, name: str, config: Mapping[str, str]) -> Any:
    prefix = f"{kind}.{name}."
    own = {key.removeprefix(prefix): text for key, text in config.items() if key.startswith(prefix)}
    try:
        return found.make(own)
    except ConfigError as error:
        raise ConfigError(f"{kind}.{name}: {error}") from error
