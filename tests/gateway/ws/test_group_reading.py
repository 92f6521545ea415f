"""A member of a group that ends while its thread still has to do what was asked of it."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from queue import SimpleQueue
from threading import Event

from gateway.kafka.member import Subscription
from gateway.kafka.values import Place, Position, Record
from gateway.ws.group_reading import GroupReading

PLACE = Place(topic="orders", partition=0)
WAIT_S = 20.0


class Member:
    """Takes until it is let go on, and tells what else it did."""

    def __init__(self) -> None:
        self.goes_on = Event()
        self.taking = Event()
        self.done: SimpleQueue[object] = SimpleQueue()

    def take(self, *, max_bytes: int, min_bytes: int, wait_s: float) -> list[Record]:
        self.taking.set()
        assert self.goes_on.wait(WAIT_S)
        return []

    def commit(self, offsets: Mapping[Place, int]) -> None:
        self.done.put(dict(offsets))

    def close(self) -> None:
        self.done.put("closed")

    def assignment(self) -> Sequence[Place]:
        return []

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        return {}

    def stop(self) -> None: ...
    def look(self) -> None: ...
    def subscribe(self, subscription: Subscription) -> None: ...
    def give_back(self, records: Sequence[Record]) -> None: ...
    def seek(self, positions: Mapping[Place, Position]) -> None: ...
    def pause(self, places: Collection[Place]) -> None: ...
    def resume(self, places: Collection[Place]) -> None: ...


def test_what_was_acked_is_committed_before_a_member_that_ends_leaves_its_group() -> None:
    member = Member()

    async def work() -> None:
        reading = GroupReading(member)
        taking = asyncio.create_task(reading.take(max_records=1, max_bytes=1))
        await asyncio.to_thread(member.taking.wait, WAIT_S)
        acking = asyncio.create_task(reading.commit({PLACE: 1}))
        # It has asked its thread, which is busy.
        await asyncio.sleep(0)
        taking.cancel()
        acking.cancel()
        reading.close({PLACE: 2})
        await asyncio.gather(taking, acking, return_exceptions=True)
        member.goes_on.set()

    asyncio.run(work())
    done = [member.done.get(timeout=WAIT_S) for _ in range(3)]
    assert done == [{PLACE: 1}, {PLACE: 2}, "closed"]
