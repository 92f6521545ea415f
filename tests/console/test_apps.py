"""What the console does while Django gets ready."""

from console.events import running
from tests.builders import live as rows
from tests.builders.live import Told


def test_event_streams_read_the_mirror_that_pages_read(told: Told) -> None:
    told.put(rows.topic("payments"))

    read = running.watch.snapshots

    assert read is not None
    assert "payments" in read().topics()
