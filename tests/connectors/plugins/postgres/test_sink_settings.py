"""Keys of the sink are refused beside each other, before anything is connected."""

import pytest

from connectors.plugins.postgres.rows import row_of
from connectors.plugins.postgres.sink import PostgresSink
from connectors.plugins.postgres.sink_settings import SinkSettings
from connectors.sdk.errors import DataError
from connectors.sdk.testing import parse_config, sink_record

OFFSETS = "samsa_connect_offsets"


@pytest.mark.parametrize(
    ("table_format", "offsets", "topic"),
    [
        ("${topic}", OFFSETS, OFFSETS),
        (OFFSETS, OFFSETS, "t"),
        ("samsa_${topic}", OFFSETS, "connect_offsets"),
        ("public.${topic}", OFFSETS, OFFSETS),
        ("${topic}", f"public.{OFFSETS}", f"public.{OFFSETS}"),
        ("${topic}", "x" * 63 + "y", "x" * 64),
    ],
)
def test_no_topic_is_written_into_the_table_of_offsets(
    table_format: str, offsets: str, topic: str
) -> None:
    config = {"connection.url": "postgresql://h/d", "table.name.format": table_format}
    parsed = parse_config(PostgresSink.definition(), {**config, "offsets.table": offsets})
    settings = SinkSettings.of(parsed, connector="c")

    [told] = PostgresSink().validate({"topics": ["orders", topic][-1:], **parsed})

    assert told.name == "table.name.format"
    assert "is the table of the sink's offsets" in told.errors[0]
    with pytest.raises(DataError, match="is the table of the sink's offsets"):
        row_of(sink_record({"a": 1}, topic=topic), 0, settings)


@pytest.mark.parametrize(
    ("table_format", "offsets", "topics"),
    [
        ("${topic}", OFFSETS, ["orders"]),
        ("${topic}", OFFSETS, []),
        ("data.${topic}", "meta.orders", ["orders"]),
    ],
)
def test_other_tables_are_no_tables_of_offsets(
    table_format: str, offsets: str, topics: list[str]
) -> None:
    config = {"connection.url": "postgresql://h/d", "table.name.format": table_format}
    parsed = parse_config(PostgresSink.definition(), {**config, "offsets.table": offsets})

    assert not PostgresSink().validate({"topics": topics, **parsed})


def test_keys_that_do_not_go_together_are_refused() -> None:
    config = {"connection.url": "postgresql://h/d", "insert.mode": "upsert", "pk.mode": "none"}
    parsed = parse_config(PostgresSink.definition(), {**config, "delete.enabled": "true"})

    told = PostgresSink().validate(parsed)

    assert [(wrong.name, wrong.errors) for wrong in told] == [
        ("pk.mode", ("insert.mode=upsert needs a primary key",)),
        ("pk.mode", ("delete.enabled=true needs record_key",)),
    ]
