"""What waits to be sent on a socket has a limit."""

import asyncio

from gateway.ws.actions import Close
from gateway.ws.outbox import Outbox


def test_who_adds_waits_until_the_connection_has_taken_enough() -> None:
    async def work() -> None:
        outbox = Outbox()
        outbox.put("x" * 10)
        waiting = asyncio.create_task(outbox.room(10))
        text = await outbox.next()
        await asyncio.sleep(0)
        assert not waiting.done()
        assert isinstance(text, str)
        outbox.sent(text)
        await waiting
        assert outbox.size == 0

    asyncio.run(work())


def test_nothing_is_sent_after_the_last_word() -> None:
    async def work() -> None:
        outbox = Outbox()
        outbox.put(Close(1012, ""))
        outbox.put("late")
        assert await outbox.next() == Close(1012, "")
        assert outbox.size == 0

    asyncio.run(work())
