"""The event streams of this web process, and the functions that publish to them and end them."""

from collections.abc import Callable
from typing import Final

from console.events.endpoint import Endpoint
from console.events.hub import Hub
from console.events.watch import Watch
from console.monitoring.selectors import Snapshot

hub: Final = Hub()
# Queries the database for all streams, including those of records.
watch: Final = Watch(hub)
# The ASGI application of `/events`.
application: Final = Endpoint(hub, watch)


def read_tables(snapshots: Callable[[], Snapshot]) -> None:
    """Publish changes of the tables in this mirror. Called once, during Django's start-up."""
    watch.snapshots = snapshots


def publish(topic: str, value: str) -> None:
    """Send the newest value of a topic to its subscribers. Thread-safe."""
    hub.publish_soon(topic, value)


def end_session(session_key: str) -> None:
    """End the streams of a session that has signed out. Thread-safe."""
    hub.end_session_soon(session_key)


def drain() -> None:
    """End all streams and refuse new ones, before the web server stops. On the event loop."""
    hub.drain()
