"""Snapshots whose checksum is right but whose content no producer can have."""

import struct

import pytest

from brokers.protocol.records.crc32c import crc32c
from brokers.storage.errors import StorageCorrupt
from brokers.storage.producer_entry import decode_snapshot

# Id, epoch, last sequence, last offset, delta, timestamp, coordinator epoch, first txn offset.
SOUND = (7, 0, 9, 100, 4, 1_000, -1, -1)


def snapshot(*entries: tuple[int, ...], version: int = 1, count: int | None = None) -> bytes:
    body = struct.pack(">i", len(entries) if count is None else count)
    body += b"".join(struct.pack(">qhiqiqiq", *entry) for entry in entries)
    return struct.pack(">hI", version, crc32c(body)) + body


def test_a_sound_snapshot_is_read() -> None:
    producers = decode_snapshot(snapshot(SOUND), "snapshot")

    assert producers[7].next_sequence == 10
    assert producers[7].last_batch() == (9, 4, 100, 1_000)


@pytest.mark.parametrize(
    "changes",
    [
        {0: -1},
        {1: -2},
        {2: -2},
        {3: -2},
        {4: -1},
        {4: 101},
        {7: -2},
    ],
)
def test_values_that_no_producer_has_are_corrupt(changes: dict[int, int]) -> None:
    entry = tuple(changes.get(place, value) for place, value in enumerate(SOUND))

    with pytest.raises(StorageCorrupt, match="not a producer"):
        decode_snapshot(snapshot(SOUND, entry), "snapshot")


@pytest.mark.parametrize("count", [-1, 0, 2, 2**31 - 1])
def test_a_lying_count_is_corrupt_and_allocates_nothing(count: int) -> None:
    with pytest.raises(StorageCorrupt, match="bytes for"):
        decode_snapshot(snapshot(SOUND, count=count), "snapshot")


@pytest.mark.parametrize("version", [0, 2, -1])
def test_another_version_is_corrupt(version: int) -> None:
    with pytest.raises(StorageCorrupt, match="version"):
        decode_snapshot(snapshot(SOUND, version=version), "snapshot")
