"""The config keys for the form of events, by Debezium's names, and their parsed value."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from connectors.plugins.postgres import placeholders
from connectors.plugins.postgres.capture.event_settings import (
    Adjustment,
    Binaries,
    Decimals,
    EventSettings,
    Hstores,
    Intervals,
    Times,
)
from connectors.plugins.postgres.capture.relations import Operation
from connectors.sdk.checks import each_of, one_of
from connectors.sdk.configs import Importance, Key, Kind
from connectors.sdk.connector import Parsed

PREFIX: Final = "topic.prefix"
DELIMITER: Final = "topic.delimiter"
DATABASE: Final = "database.dbname"
DECIMALS: Final = "decimal.handling.mode"
TIMES: Final = "time.precision.mode"
BINARIES: Final = "binary.handling.mode"
INTERVALS: Final = "interval.handling.mode"
HSTORES: Final = "hstore.handling.mode"
UNKNOWN: Final = "include.unknown.datatypes"
SCHEMA_NAMES: Final = "schema.name.adjustment.mode"
FIELD_NAMES: Final = "field.name.adjustment.mode"
PLACEHOLDER: Final = placeholders.PLACEHOLDER
TOMBSTONES: Final = "tombstones.on.delete"
SKIPPED: Final = "skipped.operations"
GROUP: Final = "Events"
ADJUSTED: Final = (
    "unchanged; avro, with underscores for characters that Avro does not allow; or avro_unicode, "
    "with the codes of such characters."
)
# Means no operation in the list of skipped operations.
NONE: Final = "none"
# The longest prefix of a topic name, before schema and table.
MAX_PREFIX_CHARS: Final = 120


def keys() -> tuple[Key, ...]:
    return (*_name_keys(), *_value_keys())


def settings_of(parsed: Parsed, *, version: str) -> EventSettings:
    """Parse the keys for events."""
    skipped = parsed[SKIPPED]
    return EventSettings(
        prefix=parsed[PREFIX],
        database=parsed[DATABASE],
        version=version,
        decimals=Decimals(parsed[DECIMALS]),
        times=Times(parsed[TIMES]),
        binaries=Binaries(parsed[BINARIES]),
        intervals=Intervals(parsed[INTERVALS]),
        hstores=Hstores(parsed[HSTORES]),
        has_unknown_types=parsed[UNKNOWN],
        placeholder=parsed[PLACEHOLDER],
        has_tombstones=parsed[TOMBSTONES],
        delimiter=parsed[DELIMITER],
        schema_names=Adjustment(parsed[SCHEMA_NAMES]),
        field_names=Adjustment(parsed[FIELD_NAMES]),
        skipped=frozenset(Operation(word) for word in skipped if word != NONE),
    )


def check_prefix(value: Any) -> str | None:
    text = value or ""
    is_name = text.isascii() and text.replace("-", "").replace("_", "").replace(".", "").isalnum()
    if is_name and len(text) <= MAX_PREFIX_CHARS:
        return None
    return (
        f"Give at most {MAX_PREFIX_CHARS} letters, digits, dots, hyphens and underscores, with"
        " which topic names begin"
    )


def _check_delimiter(value: Any) -> str | None:
    fits = value and value.isascii() and not value.strip("._-") and len(value) <= 8
    return None if fits else "Give dots, hyphens or underscores, which topic names allow"


def _check_skipped(value: Any) -> str | None:
    wrong = each_of("c", "u", "d", "t", NONE)(value)
    if wrong is None and NONE in (value or ()) and len(value) > 1:
        return f"{NONE} means no operation: give it alone"
    return wrong


def _name_keys() -> tuple[Key, ...]:
    return (
        Key(
            name=PREFIX,
            kind=Kind.STRING,
            importance=Importance.HIGH,
            doc="The prefix of topic names, before schema and table; no two connectors "
            "have the same.",
            check=check_prefix,
            group=GROUP,
        ),
        _key(
            TOMBSTONES,
            Kind.BOOLEAN,
            True,
            "Whether a record without a value follows that of a deleted row, so that compaction "
            "forgets the row.",
        ),
        _key(
            SKIPPED,
            Kind.LIST,
            ("t",),
            "Operations to skip: c inserts, u updates, d deletes, t truncations, or none.",
            check=_check_skipped,
        ),
        _key(
            DELIMITER,
            Kind.STRING,
            ".",
            "The separator between prefix, schema and table in topic names.",
            check=_check_delimiter,
        ),
    )


def _value_keys() -> tuple[Key, ...]:
    return (
        _words(
            DECIMALS,
            Decimals,
            Decimals.PRECISE,
            "The representation of NUMERIC: precise, bytes with a scale; double, which may lose "
            "digits; string.",
        ),
        _words(
            TIMES,
            Times,
            Times.ADAPTIVE,
            "The representation of times: numbers in the column's own precision, or one unit for "
            "all.",
        ),
        _words(BINARIES, Binaries, Binaries.BYTES, "The representation of BYTEA."),
        _words(
            INTERVALS,
            Intervals,
            Intervals.NUMERIC,
            "The representation of INTERVAL: numeric, microseconds with months of 30.4375 days; "
            "string.",
        ),
        _words(HSTORES, Hstores, Hstores.JSON, "The representation of HSTORE."),
        _words(SCHEMA_NAMES, Adjustment, Adjustment.NONE, f"Names of schemas: {ADJUSTED}"),
        _words(FIELD_NAMES, Adjustment, Adjustment.NONE, f"Names of fields: {ADJUSTED}"),
        _key(
            UNKNOWN,
            Kind.BOOLEAN,
            False,
            "Whether columns of types without a schema are included as bytes, or left out.",
        ),
        _key(
            PLACEHOLDER,
            Kind.STRING,
            placeholders.DEFAULT,
            "The placeholder for a large value that an update left unchanged and the log lacks.",
        ),
    )


def _words(name: str, words: type[Enum], default: Enum, doc: str) -> Key:
    known: Sequence[str] = [str(word.value) for word in words]
    return _key(
        name,
        Kind.STRING,
        default.value,
        doc,
        check=one_of(*known),
        recommend=lambda _values: list(known),
    )


def _key(name: str, kind: Kind, default: Any, doc: str, **more: Any) -> Key:
    return Key(
        name=name,
        kind=kind,
        default=default,
        importance=Importance.MEDIUM,
        doc=doc,
        group=GROUP,
        **more,
    )
