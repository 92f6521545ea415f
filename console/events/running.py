"""The event streams of this web process: what publishes to them, and what ends them."""

from collections.abc import Callable
from typing import Final

from console.events.endpoint import Endpoint
from console.events.hub import Hub
from console.events.watch import Watch
from console.monitoring.selectors import Snapshot

hub: Final = Hub()
# Asks the database for all streams, those of records included.
watch: Final = Watch(hub)
# The ASGI application of `/events`.
application: Final = Endpoint(hub, watch)


def read_tables(snapshots: Callable[[], Snapshot]) -> None:
    """Tell pages when the tables of this mirror move. Said once, while Django gets ready."""
    watch.snapshots = snapshots


def publish(topic: str, value: str) -> None:
    """Tell the tabs that listen to a topic its newest value. From any thread."""
    hub.publish_soon(topic, value)


def end_session(session_key: str) -> None:
    """End the streams of a session that has signed out. From any thread."""
    hub.end_session_soon(session_key)


def drain() -> None:
    """End all streams and open none, before the web server stops. On the event loop."""
    hub.drain()
