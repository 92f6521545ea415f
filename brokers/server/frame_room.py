"""Decides which half-received request gives way when the memory for all of them is short.

Only large requests count; small ones are bounded by the number of connections. A client whose next
bytes find no room waits unread, as under back-pressure of the network, unless another request
deserves its memory less. So peers that never complete a request, or do not go on with it, cost
others nothing, and whatever is under way can end.
"""

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from brokers.protocol.frames import FrameBuffers, FrameSplitter

if TYPE_CHECKING:
    from brokers.server.client import Client

# The memory beyond one request of the largest size, so that smaller ones pass beside it.
BESIDE_LARGEST_BYTES: Final = 4 * 1024 * 1024
# A client that waits tries again after this; memory comes free whenever a request is complete.
WAIT_SECONDS: Final = 0.05
# A request of which nothing arrived for so long gives way to others.
STALLED_SECONDS: Final = 5.0
# One that has taken so long gives way to smaller ones, and to those of other addresses.
LONG_SECONDS: Final = 10.0
# After this, one of which nothing arrives is closed even if no other needs its memory.
ABANDONED_SECONDS: Final = 30.0
# An address that holds more than one part in so many gives way to other addresses.
SHARE: Final = 2

GAVE_WAY: Final = "gave way"


class FrameRoom:
    """Belongs to a listener, whose clients it closes."""

    def __init__(self, clients: Collection["Client"], max_frame_bytes: int) -> None:
        limit = max_frame_bytes + BESIDE_LARGEST_BYTES
        self.buffers = FrameBuffers(limit, make_room=self._begin)
        self._clients = clients

    def wait(self, client: "Client", now: float) -> None:
        """Make room for the next bytes of a client, or let it wait for some."""
        client.last_active = now  # it waits for memory, and is not stalled
        if self._make_room(client, client.machine.frames, 1, now):
            return
        client.mute(now + WAIT_SECONDS)

    def _begin(self, frames: FrameSplitter, count: int) -> None:
        """Make room for the beginning of a request."""
        asker = next((each for each in self._clients if each.machine.frames is frames), None)
        if asker is not None:
            self._make_room(asker, frames, count, asker.last_active)

    def _make_room(self, asker: "Client", frames: FrameSplitter, count: int, now: float) -> bool:
        """Close others until there is room; return whether there is."""
        buffers = self.buffers
        while buffers.room_of(frames) < count:
            others = [
                each for each in self._clients if each is not asker and each.machine.frames.pending
            ]
            victim = self._least_deserving(asker, frames.frame_bytes, others, now)
            if victim is None:
                if buffers.first is None and all(is_muted(each, now) for each in others):
                    buffers.first = frames
                return buffers.room_of(frames) >= count
            victim.close(GAVE_WAY, detail=f"{buffers.pending_bytes} bytes of requests wait")
        return True

    def _least_deserving(
        self, asker: "Client", size: int, others: Collection["Client"], now: float
    ) -> "Client | None":
        held = Counter[str]()
        for each in others:
            held[each.peer.address] += each.machine.frames.pending
        share, own = self.buffers.limit // SHARE, asker.peer.address
        long = [each for each in others if is_long(each, now)]
        by_rank = (
            [each for each in others if not each.requests],
            [each for each in others if not is_muted(each, now) and is_stalled(each, now)],
            [each for each in long if held[each.peer.address] > share >= held[own]],
            [each for each in long if each.machine.frames.pending > size],
            # Even the one that goes first has no room.
            others if self.buffers.first and all(is_muted(each, now) for each in others) else (),
        )
        found = next(filter(None, by_rank), ())
        return max(found, key=lambda each: each.machine.frames.pending, default=None)


def is_muted(client: "Client", now: float) -> bool:
    return client.muted_until >= now


def is_stalled(client: "Client", now: float, seconds: float = STALLED_SECONDS) -> bool:
    return now - client.last_active > seconds


def is_long(client: "Client", now: float) -> bool:
    """Tell whether a request has been on its way for long, as the listener's last checks saw it."""
    return client.frame_mark == client.requests and now - client.frame_since > LONG_SECONDS


def is_abandoned(client: "Client", now: float) -> bool:
    """Tell whether a client seems to have given up a large request that it began."""
    return client.machine.frames.pending > 0 and is_stalled(client, now, ABANDONED_SECONDS)
