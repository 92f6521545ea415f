"""Predicates, which select the records for a transform, by Java's class names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from connectors.runtime.settings import parse_all
from connectors.runtime.transforms.sides import key_of
from connectors.sdk.checks import all_of, non_empty
from connectors.sdk.configs import Definition, Kind
from connectors.sdk.records import Record
from connectors.sdk.regexes import compile_checked, wrong_with

Test: TypeAlias = Callable[[Record], bool]

PACKAGE: Final = "org.apache.kafka.connect.transforms.predicates."


@dataclass(frozen=True, slots=True, kw_only=True)
class PredicateClass:
    """A kind of predicate: its class in Java, its keys, and its factory."""

    name: str
    keys: Definition
    build: Callable[[Mapping[str, Any]], Test]

    @property
    def alias(self) -> str:
        """Return the name without its package, which Connect accepts too."""
        return self.name.rpartition(".")[2]

    def definition(self) -> Definition:
        return self.keys

    def make(self, config: Mapping[str, Any]) -> Test:
        """Return the test of a record; ConfigError if the config is invalid."""
        return self.build(parse_all(self.keys, config))


def _build_has_header(parsed: Mapping[str, Any]) -> Test:
    name: str = parsed["name"]
    return lambda record: any(header.name == name for header in record.headers)


def _build_tombstone(_parsed: Mapping[str, Any]) -> Test:
    return lambda record: record.value is None


def _build_topic_matches(parsed: Mapping[str, Any]) -> Test:
    pattern = compile_checked(parsed["pattern"])
    return lambda record: pattern.fullmatch(record.topic) is not None


ALL: Final = (
    PredicateClass(
        name=f"{PACKAGE}HasHeaderKey",
        keys=Definition((key_of("name", Kind.STRING, "The name of the header.", check=non_empty),)),
        build=_build_has_header,
    ),
    PredicateClass(name=f"{PACKAGE}RecordIsTombstone", keys=Definition(), build=_build_tombstone),
    PredicateClass(
        name=f"{PACKAGE}TopicNameMatches",
        keys=Definition(
            (
                key_of(
                    "pattern",
                    Kind.STRING,
                    "A regular expression that the whole name of the topic has to match; in the "
                    "language of RE2, so without look-around and back references.",
                    check=all_of(non_empty, wrong_with),
                ),
            )
        ),
        build=_build_topic_matches,
    ),
)
# By Java's name and by its last part.
CLASSES: Final[Mapping[str, PredicateClass]] = MappingProxyType(
    {name: one for one in ALL for name in (one.name, one.alias)}
)
