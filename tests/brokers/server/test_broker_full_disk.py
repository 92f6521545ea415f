"""A broker whose own write meets a full disk gives up the reserve there, for the next try."""

import asyncio
from pathlib import Path

import pytest

from brokers import disk_room
from brokers.disk_room import MIB, RESERVE_FILE, Room
from brokers.storage.errors import DiskNearlyFull, OutOfSpace
from tests.fakes.broker import running_broker

FULL = Room(device=1, size_bytes=300 * MIB, used_bytes=300 * MIB, free_bytes=0)


def test_a_refused_chore_gives_up_the_reserve_and_a_refused_client_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = tmp_path / "data" / RESERVE_FILE

    async def story() -> None:
        async with running_broker(tmp_path) as running:
            reserve.touch()
            report = running.broker.replicas.report
            report("housekeeping.checkpoint_failed", OutOfSpace("a", "checkpoint"))
            assert reserve.exists(), "the disk has room again"
            monkeypatch.setattr(disk_room, "room_at", lambda _folder: FULL)
            report("disk.full", DiskNearlyFull(0, FULL.records_floor))
            assert reserve.exists()

            report("housekeeping.checkpoint_failed", OutOfSpace("a", "checkpoint"))

            assert not reserve.exists()

    asyncio.run(story())
