"""Keys of the sink are refused beside each other, before anything is connected."""

from connectors.plugins.postgres.sink import PostgresSink
from connectors.sdk.testing import parse_config


def test_keys_that_do_not_go_together_are_refused() -> None:
    config = {"connection.url": "postgresql://h/d", "insert.mode": "upsert", "pk.mode": "none"}
    parsed = parse_config(PostgresSink.definition(), {**config, "delete.enabled": "true"})

    told = PostgresSink().validate(parsed)

    assert [(wrong.name, wrong.errors) for wrong in told] == [
        ("pk.mode", ("insert.mode=upsert needs a primary key",)),
        ("pk.mode", ("delete.enabled=true needs record_key",)),
    ]
