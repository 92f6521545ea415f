"""Keys of the source are refused beside each other, before anything is connected."""

import pytest

from connectors.plugins.postgres.source import PostgresSource
from connectors.sdk.errors import ConfigError
from connectors.sdk.testing import parse_config

CONFIG = {"connection.url": "postgresql://h/d", "topic.prefix": "p", "mode": "bulk"}


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"query": "SELECT 1", "table.whitelist": "a"}, "table.whitelist"),
        ({"table.whitelist": "a", "table.blacklist": "b"}, "table.blacklist"),
        ({"mode": "timestamp"}, "timestamp.column.name"),
        ({"mode": "incrementing", "query": "SELECT 1"}, "incrementing.column.name"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(config: dict[str, str], name: str) -> None:
    parsed = parse_config(PostgresSource.definition(), CONFIG | config)

    (told,) = PostgresSource().validate(parsed)

    assert told.name == name


@pytest.mark.parametrize(
    ("config", "count"),
    [({}, 4), ({"table.whitelist": "a,b"}, 2), ({"query": "SELECT 1"}, 1)],
)
def test_there_are_no_more_tasks_than_there_is_to_read(config: dict[str, str], count: int) -> None:
    parsed = parse_config(PostgresSource.definition(), CONFIG | config)

    assert len(PostgresSource().task_configs(parsed, max_tasks=4)) == count


def test_offsets_are_whole_numbers() -> None:
    PostgresSource().alter_offsets({}, {"a": {"incrementing": 5}, "b": None})

    with pytest.raises(ConfigError, match="incrementing"):
        PostgresSource().alter_offsets({}, {"a": {"incrementing": "5"}})
