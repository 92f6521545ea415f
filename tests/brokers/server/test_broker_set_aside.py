"""A folder that a broker sets aside is logged with its path, and counted for the console."""

import asyncio
from pathlib import Path

from brokers.server.feed import Feed
from brokers.storage.partition_metadata import write_partition_metadata
from tests.fakes.broker import running_broker
from tests.fakes.faulty_files import UnsyncedFiles


def test_a_folder_of_another_topic_is_logged_with_its_path_and_counted(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "orders-1"
    folder.mkdir(parents=True)
    write_partition_metadata(UnsyncedFiles(), str(folder), bytes(range(16)))

    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 2}) as running:
            logged = [line for line in running.lines if line["event"] == "folder.set_aside"]
            feed = Feed(running.context)
            told = "".join(await feed.read("", 0))
            feed.close()

        (line,) = logged
        assert line["topic"] == "orders"
        assert line["partition"] == 1
        assert Path(line["path"]).parent == folder.parent
        assert Path(line["path"]).name.startswith("orders-1.")
        assert line["path"].endswith("-stray")
        assert '"folders_aside": 1' in told

    asyncio.run(story())
