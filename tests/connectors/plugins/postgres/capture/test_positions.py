"""Offsets say where to go on, and those of others are refused."""

from typing import Any

import pytest

from connectors.plugins.postgres.capture.positions import Position, parse, text_of
from connectors.sdk.errors import ConfigError


@pytest.mark.parametrize(
    "position",
    [
        Position(committed=0),
        Position(committed=5, transaction=9, change=7, epoch=3),
        Position(committed=5, is_snapshot=True, table="public.a", epoch=1),
    ],
)
def test_a_position_comes_back_from_its_offset(position: Position) -> None:
    assert Position.of(position.offset()) == position


def test_without_an_offset_there_is_no_position() -> None:
    assert Position.of(None) is None


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        ({}, "has no lsn_commit"),
        ({"lsn_commit": "0/16"}, "lsn_commit is '0/16'"),
        ({"lsn_commit": -1}, "whole number of 64 bits"),
        ({"lsn_commit": True}, "lsn_commit is True"),
        ({"lsn_commit": 1, "lsn": 1.5}, "lsn is 1.5"),
        ({"lsn_commit": 1, "snapshot_table": 3}, "snapshot_table is 3"),
    ],
)
def test_an_offset_of_another_kind_is_refused(offset: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Position.of(offset)


def test_places_are_written_as_postgresql_writes_them() -> None:
    assert text_of(0x16_B374D848) == "16/B374D848"
    assert parse("16/B374D848") == 0x16_B374D848
