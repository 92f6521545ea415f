"""A channel layer of Channels on the one subscription that a worker has at the shared server.

It carries hints, such as that rights have changed. A message may be lost: without a server, only
the own process gets it, and a channel that is full or has expired gets none. So code that acts on
messages also looks by itself from time to time.
"""

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec
from channels.exceptions import ChannelFull
from channels.layers import BaseChannelLayer

log: Final = logging.getLogger(__name__)
# The channel of the shared server that has the messages of all groups and processes.
NEWS: Final = "layer"
Message = dict[str, Any]
# A hint names a thing or two.
MAX_MESSAGE_BYTES: Final = 4 * 1024
# With the names of its process, and of its group or channel.
MAX_PACKET_BYTES: Final = MAX_MESSAGE_BYTES + 512
# Unread messages of one channel, and how long they are kept: the defaults of Channels.
CAPACITY: Final = 100
EXPIRY_S: Final = 60
# How long a channel stays in a group that it was not added to again.
GROUP_EXPIRY_S: Final = 86_400
# Channels with a reader or unread messages, and members of all groups: a worker has a few of each,
# since sockets have none.
MAX_CHANNELS: Final = 100
MAX_MEMBERS: Final = 100


class News(Protocol):
    """The messages between workers."""

    async def publish(self, channel: str, value: bytes) -> bool: ...

    def listen(self, channel: str, heard: Callable[[bytes], None]) -> None: ...


class Packet(msgspec.Struct, array_like=True):
    """A message for the members of a group, or for one channel, in all processes but its own."""

    origin: str
    # Packed: each reader gets a copy of its own.
    message: msgspec.Raw
    group: str = ""
    channel: str = ""


PACKETS: Final = msgspec.msgpack.Decoder(Packet)
MESSAGES: Final[msgspec.msgpack.Decoder[Message]] = msgspec.msgpack.Decoder(Message)


class Inbox:
    """The unread messages of one channel, each with the time at which it expires."""

    def __init__(self) -> None:
        self.messages: deque[tuple[float, msgspec.Raw]] = deque()
        self.filled = asyncio.Event()
        self.readers = 0


class SharedChannelLayer(BaseChannelLayer):
    """Belongs to one event loop.

    A channel of `new_channel` is that of the process in its name; any other one is local.
    """

    extensions: Final = ("groups", "flush")

    def __init__(
        self,
        news: News,
        *,
        expiry: int = EXPIRY_S,
        capacity: int = CAPACITY,
        channel_capacity: Mapping[str, int] | None = None,
        group_expiry: int = GROUP_EXPIRY_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(expiry=expiry, capacity=capacity)
        # Compiled, as `get_capacity` reads it.
        self.channel_capacity = self.compile_capacities(channel_capacity or {})
        self.group_expiry = group_expiry
        self._monotonic = monotonic
        self._news = news
        self._origin = secrets.token_hex(8)
        self._inboxes: dict[str, Inbox] = {}
        # When each member was added.
        self._groups: dict[str, dict[str, float]] = {}

    def begin(self) -> None:
        """Hear other processes from now on."""
        self._news.listen(NEWS, self._hear)

    # --- channels ----------------------------------------------------------------------------

    async def new_channel(self, prefix: str = "specific") -> str:
        """Return the name of a channel of this process."""
        return f"{prefix}.{self._origin}!{secrets.token_hex(8)}"

    async def send(self, channel: str, message: Message) -> None:
        """Send to a channel. Raises ChannelFull if it is one of this process, and full."""
        self.require_valid_channel_name(channel)
        packet = self._packet(message, channel=channel)
        if self._is_local(channel):
            self._put(channel, packet.message)
        else:
            await self._publish(packet)

    async def receive(self, channel: str) -> Message:
        """Wait for the next message of a channel; of several readers, one gets it."""
        self.require_valid_channel_name(channel)
        inbox = self._inbox(channel)
        inbox.readers += 1
        try:
            while True:
                self._drop_expired(channel, inbox)
                if inbox.messages:
                    return MESSAGES.decode(inbox.messages.popleft()[1])
                inbox.filled.clear()
                await inbox.filled.wait()
        finally:
            inbox.readers -= 1
            self._forget_idle(channel, inbox)

    # --- groups ------------------------------------------------------------------------------

    async def group_add(self, group: str, channel: str) -> None:
        """Add a channel of this process to a group.

        Raises ChannelFull if all groups together have too many members.
        """
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        if not self._is_local(channel):
            raise ValueError(f"{channel} is a channel of another process, which can add it")
        is_new = channel not in self._groups.get(group, {})
        if is_new and sum(map(len, self._groups.values())) >= MAX_MEMBERS:
            raise ChannelFull(channel)
        self._groups.setdefault(group, {})[channel] = self._monotonic()

    async def group_discard(self, group: str, channel: str) -> None:
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        self._remove(group, channel)

    async def group_send(self, group: str, message: Message) -> None:
        """Send to the members of a group in all processes; full channels miss it."""
        self.require_valid_group_name(group)
        packet = self._packet(message, group=group)
        self._deliver(packet)
        await self._publish(packet)

    # --- life --------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Forget the messages and groups of this process."""
        self._groups.clear()
        for channel, inbox in list(self._inboxes.items()):
            inbox.messages.clear()
            self._forget_idle(channel, inbox)

    async def close(self) -> None:
        await self.flush()

    # --- packets -----------------------------------------------------------------------------

    def _packet(self, message: Message, *, group: str = "", channel: str = "") -> Packet:
        assert isinstance(message, dict), "a message is a dict"
        packed = msgspec.Raw(msgspec.msgpack.encode(message))
        if len(packed) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message has {len(packed)} bytes; at most {MAX_MESSAGE_BYTES} fit")
        return Packet(origin=self._origin, message=packed, group=group, channel=channel)

    async def _publish(self, packet: Packet) -> None:
        await self._news.publish(NEWS, msgspec.msgpack.encode(packet))

    def _hear(self, value: bytes) -> None:
        """Deliver a packet of another process."""
        if len(value) > MAX_PACKET_BYTES:
            log.warning("layer.too_large bytes=%s", len(value))
            return
        try:
            packet = PACKETS.decode(value)
            MESSAGES.decode(packet.message)
        except (msgspec.DecodeError, RecursionError) as error:
            log.warning("layer.unreadable error=%s", error)
            return
        if packet.origin != self._origin:
            self._deliver(packet)

    def _deliver(self, packet: Packet) -> None:
        """Put a message into the channels of this process that it is for, if there is room."""
        if packet.group:
            channels = self._members(packet.group)
        else:
            channels = [packet.channel] if self._is_own(packet.channel) else []
        for channel in channels:
            try:
                self._put(channel, packet.message)
            except ChannelFull:
                log.info("layer.channel_full channel=%s", channel)

    # --- inboxes and members -----------------------------------------------------------------

    def _is_own(self, channel: str) -> bool:
        process, has_mark, _ = channel.partition("!")
        return bool(has_mark) and process.endswith(f".{self._origin}")

    def _is_local(self, channel: str) -> bool:
        return "!" not in channel or self._is_own(channel)

    def _inbox(self, channel: str) -> Inbox:
        inbox = self._inboxes.get(channel)
        if inbox is None:
            if len(self._inboxes) >= MAX_CHANNELS:
                self._forget_expired()
            if len(self._inboxes) >= MAX_CHANNELS:
                raise ChannelFull(channel)
            inbox = self._inboxes[channel] = Inbox()
        return inbox

    def _put(self, channel: str, message: msgspec.Raw) -> None:
        inbox = self._inbox(channel)
        if len(inbox.messages) >= self.get_capacity(channel):
            self._drop_expired(channel, inbox)
        if len(inbox.messages) >= self.get_capacity(channel):
            raise ChannelFull(channel)
        inbox.messages.append((self._monotonic() + self.expiry, message))
        inbox.filled.set()

    def _drop_expired(self, channel: str, inbox: Inbox) -> None:
        """Drop messages that were not read in time; such a channel leaves its groups."""
        now = self._monotonic()
        if inbox.messages and inbox.messages[0][0] < now:
            for group in list(self._groups):
                self._remove(group, channel)
        while inbox.messages and inbox.messages[0][0] < now:
            inbox.messages.popleft()

    def _forget_expired(self) -> None:
        for channel, inbox in list(self._inboxes.items()):
            self._drop_expired(channel, inbox)
            self._forget_idle(channel, inbox)

    def _forget_idle(self, channel: str, inbox: Inbox) -> None:
        if not inbox.messages and not inbox.readers and self._inboxes.get(channel) is inbox:
            del self._inboxes[channel]

    def _members(self, group: str) -> list[str]:
        """Return the channels of a group whose membership has not expired."""
        since = self._monotonic() - self.group_expiry
        for channel, added_at in list(self._groups.get(group, {}).items()):
            if added_at < since:
                self._remove(group, channel)
        return list(self._groups.get(group, ()))

    def _remove(self, group: str, channel: str) -> None:
        members = self._groups.get(group, {})
        members.pop(channel, None)
        if not members:
            self._groups.pop(group, None)
