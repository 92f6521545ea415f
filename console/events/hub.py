"""Holds all open event streams of a web process, and the newest value of each topic.

Knows no HTTP and no database. Everything belongs to the event loop, except for the functions that
end in `_soon`, which pass their work to it.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from console.events.topics import is_topic
from gateway.access.grants import Rights

# Tabs of one user, one stream for each page. With more, something opens them in a loop.
MAX_PER_USER: Final = 30
# Streams of a web process. Each takes about 20 KB and a file descriptor of the usual 1,024.
MAX_STREAMS: Final = 500
# The subjects of a page besides the cluster: a topic, a group, some running operations.
MAX_TOPICS_PER_STREAM: Final = 16
# Topics whose last value is kept for later streams; the least recently published is evicted first.
# With values of 4 KB, these take 4 MB.
MAX_KEPT_TOPICS: Final = 1_000
# A value is a hint or a few numbers, at most a fragment of a page.
MAX_VALUE_LENGTH: Final = 16_384


class TooManyStreams(Exception):
    """A limit of open streams is reached; the message names it."""


class NotServing(Exception):
    """The web server is about to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The user of a stream, the session that it ends with, and the user's rights."""

    user_id: int
    session_key: str
    # A change of rights ends the session.
    rights: Rights


class Stream:
    """One tab's stream: its unsent values."""

    def __init__(self, owner: Owner, topics: frozenset[str]) -> None:
        self.owner = owner
        self.topics = topics
        self.ended = ""  # why, once it has ended
        self._pending: dict[str, str] = {}
        self._wake = asyncio.Event()

    def offer(self, topic: str, value: str) -> None:
        """Replace the unsent value of a topic."""
        self._pending[topic] = value
        self._wake.set()

    def end(self, reason: str) -> None:
        self.ended = self.ended or reason
        self._wake.set()

    @property
    def pending(self) -> int:
        return len(self._pending)

    async def take(self, *, patience_s: float) -> dict[str, str]:
        """Wait for values and return them; none on a timeout, or if the stream has ended."""
        try:
            async with asyncio.timeout(patience_s):
                await self._wake.wait()
        except TimeoutError:
            return {}
        self._wake.clear()
        taken, self._pending = self._pending, {}
        return taken


class Hub:
    def __init__(self, *, max_streams: int = MAX_STREAMS, max_per_user: int = MAX_PER_USER) -> None:
        self._max_streams = max_streams
        self._max_per_user = max_per_user
        self._streams: set[Stream] = set()
        self._values: dict[str, str] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_draining = False

    def open(self, owner: Owner, topics: Iterable[str]) -> Stream:
        """Return a stream that starts with the known values of its topics."""
        if self._is_draining:
            raise NotServing("the web server is about to stop")
        if len(self._streams) >= self._max_streams:
            raise TooManyStreams(f"this web server has {self._max_streams} event streams open")
        own = sum(stream.owner.user_id == owner.user_id for stream in self._streams)
        if own >= self._max_per_user:
            raise TooManyStreams(f"this user has {self._max_per_user} tabs open; close some")
        self._loop = asyncio.get_running_loop()
        stream = Stream(owner, frozenset(topics))
        self._streams.add(stream)
        for topic in stream.topics & self._values.keys():
            stream.offer(topic, self._values[topic])
        return stream

    def close(self, stream: Stream) -> None:
        self._streams.discard(stream)

    @property
    def topics(self) -> set[str]:
        """Return the topics with subscribers, for publishers that have to fetch values."""
        return set().union(*(stream.topics for stream in self._streams))

    @property
    def session_keys(self) -> set[str]:
        return {stream.owner.session_key for stream in self._streams}

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    def publish(self, topic: str, value: str) -> None:
        """Send a value to the streams of its topic, if it has changed."""
        assert is_topic(topic), f"{topic!r} is not a kind and name"
        assert len(value) <= MAX_VALUE_LENGTH, (
            f"{len(value)} characters; at most {MAX_VALUE_LENGTH} fit"
        )
        assert value.isprintable(), "a value is one line"
        if self._values.pop(topic, None) == value:
            # Published again, so it is no longer the oldest.
            self._values[topic] = value
            return
        self._values[topic] = value
        while len(self._values) > MAX_KEPT_TOPICS:
            del self._values[next(iter(self._values))]
        for stream in self._streams:
            if topic in stream.topics:
                stream.offer(topic, value)

    def publish_soon(self, topic: str, value: str) -> None:
        self._soon(self.publish, topic, value)

    def end_session(self, session_key: str) -> None:
        for stream in self._streams:
            if stream.owner.session_key == session_key:
                stream.end("signed out")

    def end_session_soon(self, session_key: str) -> None:
        self._soon(self.end_session, session_key)

    def drain(self) -> None:
        """End every stream and refuse new ones."""
        self._is_draining = True
        for stream in self._streams:
            stream.end("restarting")

    def _soon(self, action: Callable[..., None], *arguments: str) -> None:
        """Run an action on the loop; before the first stream there is no loop or subscriber."""
        if self._loop is None or self._loop.is_closed():
            if action == self.publish:
                self.publish(*arguments)
            return
        self._loop.call_soon_threadsafe(action, *arguments)
