"""Sends and receives hints: that something has changed, and is worth a look before the next poll.

A hint says nothing more, and may be lost.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Final

from gateway.shared.layer import News, SharedChannelLayer
from gateway.shared.store import PAUSE_SECONDS, Shared

# The group of those that look at rights, tokens and sessions.
ACCESS: Final = "access"
# An unread hint replaces later ones.
CHANNEL: Final = "hints"
CAPACITIES: Final = {f"{CHANNEL}.*": 1}
# How long a change waits for its hint: a resolver of names may hang for longer than any deadline of
# asyncio, whose loop waits for the resolver's thread.
WAIT_SECONDS: Final = 0.5
# A channel is added to its group again before its membership expires.
RENEWAL_SECONDS: Final = 3_600.0


class _Server:
    """Not asked again for a while after a failure, so that a change of many rows waits once."""

    asks_again_at = 0.0


def layer_of(news: News) -> SharedChannelLayer:
    """Return a layer whose channels of hints hold one each."""
    return SharedChannelLayer(news, channel_capacity=CAPACITIES)


def send(group: str, *, url: str, cluster: str) -> None:
    """Send a hint, and wait for that no longer than a moment."""
    if not url or time.monotonic() < _Server.asks_again_at:
        return
    run = partial(_send_alone, group, url, cluster)
    sending = threading.Thread(target=run, name="hint", daemon=True)
    sending.start()
    sending.join(WAIT_SECONDS)
    if sending.is_alive():
        _Server.asks_again_at = time.monotonic() + PAUSE_SECONDS


async def hints_of(layer: SharedChannelLayer, group: str) -> AsyncIterator[None]:
    """Yield for each hint to a group; once for those that come while the last one is handled."""
    channel = await layer.new_channel(CHANNEL)
    is_hinted = False
    try:
        while True:
            await layer.group_add(group, channel)
            with suppress(TimeoutError):
                async with asyncio.timeout(RENEWAL_SECONDS):
                    is_hinted = bool(await layer.receive(channel))
            if is_hinted:
                is_hinted = False
                yield
    finally:
        await layer.group_discard(group, channel)


def _send_alone(group: str, url: str, cluster: str) -> None:
    asyncio.run(_send(group, Shared(url, cluster=cluster)))


async def _send(group: str, shared: Shared) -> None:
    try:
        await layer_of(shared).group_send(group, {"type": f"{group}.changed"})
    finally:
        await shared.close()
    if not shared.is_there:
        _Server.asks_again_at = time.monotonic() + PAUSE_SECONDS
