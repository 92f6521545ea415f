"""Messages are what a server wrote, and hostile bytes are no message."""

from contextlib import suppress
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.plugins.postgres.capture import pgoutput
from connectors.plugins.postgres.capture.pgoutput import (
    BadMessage,
    Begin,
    Change,
    Commit,
    Ignored,
    Keepalive,
    Origin,
    Payload,
    Relation,
    RelationColumn,
    Truncate,
)
from connectors.plugins.postgres.capture.relations import UNCHANGED, Operation
from tests.connectors.plugins.postgres.capture import frames

# What PostgreSQL 15 has sent for a table (id int primary key, t text, ts timestamptz) and one row.
RELATION = (
    b"R\x00\x00@\x00public\x00a\x00d\x00\x03\x01id\x00\x00\x00\x00\x17\xff\xff\xff\xff\x00t\x00"
    b"\x00\x00\x00\x19\xff\xff\xff\xff\x00ts\x00\x00\x00\x04\xa0\xff\xff\xff\xff"
)
INSERT = (
    b"I\x00\x00@\x00N\x00\x03t\x00\x00\x00\x011t\x00\x00\x00\x01xt\x00\x00\x00\x1d"
    b"2026-11-19 17:20:39.606818+00"
)
WHOLE = (
    frames.begin(9),
    frames.commit(8, 9),
    RELATION,
    INSERT,
    frames.update(16384, "1", "?", None, old=b"K" + frames.row("0", None, None)),
    frames.delete(16384, "1", None, None),
    frames.truncate(1, 2),
    b"O" + pack(">Q", 5) + b"elsewhere\0",
)


def test_what_a_server_has_sent_is_read() -> None:
    column = {"type_modifier": -1}
    assert pgoutput.decode(RELATION) == Relation(
        oid=16384,
        schema="public",
        name="a",
        identity="d",
        columns=(
            RelationColumn(name="id", is_key=True, type_oid=23, **column),
            RelationColumn(name="t", is_key=False, type_oid=25, **column),
            RelationColumn(name="ts", is_key=False, type_oid=1184, **column),
        ),
    )
    assert pgoutput.decode(INSERT) == Change(
        operation=Operation.CREATE,
        relation=16384,
        new=("1", "x", "2026-11-19 17:20:39.606818+00"),
    )


def test_each_kind_of_message_is_read() -> None:
    committed = frames.COMMITTED_US
    told = [pgoutput.decode(body) for body in (*WHOLE[:2], *WHOLE[4:])]

    assert told == [
        Begin(final_lsn=9, commit_us=committed, xid=7),
        Commit(commit_lsn=8, end_lsn=9, commit_us=committed),
        Change(
            operation=Operation.UPDATE,
            relation=16384,
            old=("0", None, None),
            is_old_key_only=True,
            new=("1", UNCHANGED, None),
        ),
        Change(
            operation=Operation.DELETE,
            relation=16384,
            old=("1", None, None),
            is_old_key_only=True,
        ),
        Truncate(relations=(1, 2)),
        Origin(lsn=5, name="elsewhere"),
    ]
    assert isinstance(pgoutput.decode(b"Y whatever"), Ignored)


def test_frames_carry_messages_and_signs_of_life() -> None:
    assert pgoutput.frame(b"w" + pack(">QQq", 5, 6, 0) + b"Bx") == Payload(
        lsn=5, wal_end=6, body=b"Bx"
    )
    assert pgoutput.frame(b"k" + pack(">QqB", 6, 0, 1)) == Keepalive(wal_end=6, wants_reply=True)
    assert len(pgoutput.status(7, now_us=frames.COMMITTED_US)) == 34


@pytest.mark.parametrize("body", WHOLE, ids=lambda body: chr(body[0]))
def test_a_message_that_ends_early_or_late_is_none(body: bytes) -> None:
    for end in range(len(body)):
        with pytest.raises(BadMessage):
            pgoutput.decode(body[:end])
    with pytest.raises(BadMessage, match="1 bytes follow"):
        pgoutput.decode(body + b"\0")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "1 bytes are announced"),
        (b"S\0\0\0\1", "not in version 1 of pgoutput"),
        (b"I\0\0\0\1N\0\1t\x7f\xff\xff\xff", "2147483647 bytes are announced"),
        (b"I\0\0\0\1N\0\1t\xff\xff\xff\xff", "-1 bytes are announced"),
        (b"I\0\0\0\1N\xff\xff", "65535 columns"),
        (b"I\0\0\0\1N\0\1b\0\0\0\0", "is unexpected"),
        (b"I\0\0\0\1N\0\1t\0\0\0\1\xff", "not UTF-8"),
        (b"T\xff\xff\xff\xff\0", "4294967295 tables"),
        (b"R\0\0\0\1public", "has no end"),
    ],
)
def test_lengths_that_lie_are_told(body: bytes, words: str) -> None:
    with pytest.raises(BadMessage, match=words):
        pgoutput.decode(body)


@given(st.sampled_from(WHOLE), st.data())
def test_bytes_of_anybody_are_a_message_or_none(body: bytes, data: st.DataObject) -> None:
    changed = bytearray(body)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    for reader in (pgoutput.decode, pgoutput.frame):
        with suppress(BadMessage):
            reader(bytes(changed))


@given(st.binary(max_size=64))
def test_no_bytes_raise_anything_else(body: bytes) -> None:
    for reader in (pgoutput.decode, pgoutput.frame):
        with suppress(BadMessage):
            reader(body)
