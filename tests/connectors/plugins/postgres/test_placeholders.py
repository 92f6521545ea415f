"""A sink recognizes what a capture writes for a value that the log lacks, and nothing else."""

from itertools import product
from typing import Any

import pytest

from connectors.plugins.postgres.capture.column_kinds import BUILT_IN, ELEMENTS, EXTENSIONS
from connectors.plugins.postgres.capture.event_settings import Binaries, Decimals, Hstores
from connectors.plugins.postgres.capture.relations import UNCHANGED, Column, Operation, Table
from connectors.plugins.postgres.placeholders import DEFAULT, Placeholder
from connectors.runtime import converters
from connectors.sdk.errors import DataError
from connectors.sdk.schemas import Schema
from tests.connectors.plugins.postgres.capture.rows import array_of, built_in, change, of_extension

ELEMENT_TYPES = [*map(built_in, BUILT_IN), *map(of_extension, EXTENSIONS)]
TYPES = [*ELEMENT_TYPES, *(array_of(one) for one in ELEMENT_TYPES if one.name in ELEMENTS)]


def written(**settings: Any) -> dict[str, tuple[Schema, Any]]:
    """Return what becomes of an unchanged value, by type; without types that are never large."""
    found = {}
    for type_ in TYPES:
        table = Table(schema="public", name="t", columns=(Column(name="it", type=type_),))
        try:
            (record,) = change(Operation.UPDATE, after=(UNCHANGED,), table=table, **settings)
        except DataError:
            continue
        row = record.value["after"]
        found[type_.name] = (row.schema.fields[0].schema, row["it"])
    return found


@pytest.mark.parametrize("has_schemas", [True, False])
@pytest.mark.parametrize(("binaries", "decimals"), list(product(Binaries, Decimals)))
def test_placeholder_of_every_type_is_recognized_through_json(
    binaries: Binaries, decimals: Decimals, *, has_schemas: bool
) -> None:
    json = converters.make("JsonConverter", {"schemas.enable": str(has_schemas)}, is_key=False)
    told = {
        **written(binaries=binaries, decimals=decimals, hstores=Hstores.JSON),
        "map": written(hstores=Hstores.MAP)["hstore"],
    }

    read = {
        name: json.to_value("t", json.from_value("t", schema, value))[1]
        for name, (schema, value) in told.items()
    }

    assert {"text", "bytea", "jsonb", "_text", "_numeric", "_uuid", "_bytea"} <= read.keys()
    missed = {
        name: (value, read[name])
        for name, (_, value) in told.items()
        if not (Placeholder(DEFAULT).matches(value) and Placeholder(DEFAULT).matches(read[name]))
    }
    assert missed == {}


@pytest.mark.parametrize(
    "value",
    [
        *(None, "", "gone!", "Z29uZQ=", b"", b"gon", 103, ["gone", "gone"], [["gone", 1]]),
        *([103, 111, 110, 102], ["a", "b", "c", "d"], [None] * 4, {"gone": "here"}, {}, []),
        {"wkb": None, "srid": 1},
        {"dimensions": 4, "vector": "gone"},
        {"dimensions": 4, "vector": [[1, 103], [], None, 7]},
        [{"scale": 0, "value": "?"}] * 4,
        [{"scale": 0, "value": None}, *[{"scale": 1, "value": b"g"}] * 3],
    ],
)
def test_value_beside_the_placeholder_is_not_taken_for_it(value: Any) -> None:
    assert not Placeholder("gone").matches(value)
