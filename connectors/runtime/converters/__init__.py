"""Lists and creates the converters between the bytes of a topic and values.

A converter is created once per task, and caches schemas.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Protocol

from connectors.runtime.converters import json_converter, plain, simple_header
from connectors.runtime.settings import parse_all
from connectors.sdk.configs import Definition
from connectors.sdk.errors import ConfigError
from connectors.sdk.schemas import Schema


class Converter(Protocol):
    """Raises DataError if the conversion fails; it would fail again for the same record."""

    @property
    def name(self) -> str:
        """Return the name of the class in Java, for dead letters."""

    def to_value(
        self, topic: str, payload: bytes | None, headers: Iterable[Any] = ()
    ) -> tuple[Schema | None, Any]: ...

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverterClass:
    """A kind of converter: its class in Java, its keys, and its factory."""

    name: str
    keys: Definition
    build: Callable[[Mapping[str, Any]], Converter]
    is_for_headers_only: bool = False

    @property
    def aliases(self) -> tuple[str, ...]:
        """Return Connect's other names: without the package, and also without `Converter`."""
        simple = self.name.rpartition(".")[2]
        return simple, simple.removesuffix("Converter")

    def definition(self) -> Definition:
        return self.keys


def _number_converter(word: str, _parsed: Mapping[str, Any]) -> Converter:
    return plain.NumberConverter(word)


_STORAGE: Final = "org.apache.kafka.connect.storage."
ALL: Final = (
    ConverterClass(
        name="org.apache.kafka.connect.json.JsonConverter",
        keys=json_converter.KEYS,
        build=json_converter.JsonConverter,
    ),
    ConverterClass(
        name=f"{_STORAGE}StringConverter", keys=plain.STRING_KEYS, build=plain.StringConverter
    ),
    ConverterClass(
        name=f"{plain.PACKAGE}ByteArrayConverter",
        keys=plain.KEYS,
        build=lambda _: plain.ByteArrayConverter(),
    ),
    ConverterClass(
        name=f"{plain.PACKAGE}BooleanConverter",
        keys=plain.KEYS,
        build=lambda _: plain.BooleanConverter(),
    ),
    *(
        ConverterClass(
            name=f"{plain.PACKAGE}{word}Converter",
            keys=plain.KEYS,
            build=partial(_number_converter, word),
        )
        for word in plain.WIDTHS
    ),
    ConverterClass(
        name=f"{_STORAGE}SimpleHeaderConverter",
        keys=Definition(),
        build=lambda _: simple_header.SimpleHeaderConverter(),
        is_for_headers_only=True,
    ),
)
# By Java's name and by each alias. All of them can convert headers.
HEADER_CLASSES: Final[Mapping[str, ConverterClass]] = MappingProxyType(
    {name: one for one in ALL for name in (one.name, *one.aliases)}
)
# Converters of keys and values.
CLASSES: Final[Mapping[str, ConverterClass]] = MappingProxyType(
    {name: one for name, one in HEADER_CLASSES.items() if not one.is_for_headers_only}
)


def make(class_name: str, parsed_props: Mapping[str, Any], *, is_key: bool) -> Converter:
    """Return a converter; its properties are texts or parsed, without the prefix of their key."""
    return _made(CLASSES, class_name, parsed_props, "key" if is_key else "value")


def make_for_headers(class_name: str, parsed_props: Mapping[str, Any]) -> Converter:
    """Return a converter of single headers, with the interface of a value's converter."""
    return _made(HEADER_CLASSES, class_name, parsed_props, "header")


def _made(
    classes: Mapping[str, ConverterClass], name: str, props: Mapping[str, Any], usage: str
) -> Converter:
    found = classes.get(name)
    if found is None:
        known = ", ".join(sorted({one.name for one in classes.values()}))
        raise ConfigError(f"no converter is named {name}: there are {known}")
    return found.build(parse_all(found.keys, {"converter.type": usage, **props}))
