"""A config is refused where its server says that it cannot work, and not where it is away."""

from typing import Any

import psycopg
import pytest

from connectors.plugins.postgres.capture.connector import PostgresCapture
from connectors.sdk.testing import parse_config
from tests.connectors.plugins.postgres.capture.captures import config
from tests.extras import requires

pytestmark = [requires("postgresql"), pytest.mark.slow]


def wrong(database: psycopg.Connection[Any], **more: str) -> dict[str, tuple[str, ...]]:
    parsed = parse_config(PostgresCapture.definition(), config(database, **more))
    return {value.name: value.errors for value in PostgresCapture().validate(parsed)}


def test_a_server_that_fits_finds_nothing_wrong(database: psycopg.Connection[Any]) -> None:
    assert wrong(database) == {}


def test_a_server_that_is_away_or_may_not_be_reached_says_nothing(
    database: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wrong(database, database_port="1") == {}
    monkeypatch.delenv("SAMSA_CONNECT_TARGETS")
    assert wrong(database, database_dbname="nowhere") == {}


def test_a_database_that_is_not_there_is_told(database: psycopg.Connection[Any]) -> None:
    (text,) = wrong(database, database_dbname="nowhere")["database.dbname"]

    assert text.endswith('database "nowhere" does not exist')


def test_a_publication_that_must_be_there_is_told(database: psycopg.Connection[Any]) -> None:
    told = wrong(database, publication_autocreate_mode="disabled")
    assert "create it" in told["publication.autocreate.mode"][0]

    database.execute("CREATE PUBLICATION dbz_publication")
    assert wrong(database, publication_autocreate_mode="disabled") == {}


def test_a_slot_of_another_plugin_is_told(database: psycopg.Connection[Any]) -> None:
    slot = database.info.dbname
    database.execute("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", (slot,))

    assert "uses the plugin test_decoding" in wrong(database)["slot.name"][0]


def test_a_log_without_changes_is_told(
    database: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.plugins.postgres.capture.facts.NEEDED_LEVEL", "more")

    assert "wal_level=logical" in wrong(database)["database.hostname"][0]
    assert wrong(database, snapshot_mode="initial_only") == {}


def test_lists_that_contradict_each_other_are_told(database: psycopg.Connection[Any]) -> None:
    told = wrong(database, table_include_list="a", table_exclude_list="b")

    assert told == {
        "table.exclude.list": ("table.include.list is given as well: give only one of the two",)
    }
