"""Sockets that are ready are called, fairly, and never after they were taken out."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from brokers.clock import SystemClock
from brokers.server import readers as readers_module
from brokers.server.readers import Readers
from tests.fakes.clock import ManualClock
from tests.fakes.listener import until

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pairs() -> Iterator[list[Pair]]:
    made = [socket.socketpair() for _ in range(readers_module.READY_PER_TURN + 6)]
    yield made
    for pair in made:
        for end in pair:
            end.close()


def test_a_socket_is_called_while_there_is_something_to_read(pairs: list[Pair]) -> None:
    left, right = pairs[0]
    taken: list[bytes] = []

    async def story() -> None:
        readers = Readers(asyncio.get_running_loop(), SystemClock())
        readers.add(left, lambda: taken.append(left.recv(1)))
        right.send(b"ab")
        await until(lambda: len(taken) == 2)
        readers.remove(left)

        right.send(b"c")
        for _ in range(10):
            await asyncio.sleep(0)

        assert taken == [b"a", b"b"]
        readers.add(left, lambda: taken.append(left.recv(1)))
        await until(lambda: len(taken) == 3)
        readers.close()

    asyncio.run(story())


def test_who_was_taken_out_by_another_in_the_same_turn_is_not_called(pairs: list[Pair]) -> None:
    calls: list[int] = []

    async def story() -> None:
        readers = Readers(asyncio.get_running_loop(), SystemClock())

        def first(number: int) -> None:
            calls.append(number)
            for left, _right in pairs[:2]:
                readers.remove(left)

        readers.add(pairs[0][0], lambda: first(0))
        readers.add(pairs[1][0], lambda: first(1))
        for _left, right in pairs[:2]:
            right.send(b"x")
        await until(lambda: calls)
        for _ in range(10):
            await asyncio.sleep(0)

        assert len(calls) == 1
        readers.close()

    asyncio.run(story())


def test_more_than_one_turn_takes_are_all_called(pairs: list[Pair]) -> None:
    called: set[int] = set()

    async def story() -> None:
        readers = Readers(asyncio.get_running_loop(), SystemClock())
        for number, (left, right) in enumerate(pairs):
            # They stay ready: who is called again must not keep others from their turn.
            readers.add(left, lambda number=number: called.add(number))  # type: ignore[misc]
            right.send(b"x")

        await until(lambda: len(called) == len(pairs))

        readers.close()

    asyncio.run(story())


def test_a_peer_that_leaves_is_told(pairs: list[Pair]) -> None:
    left, right = pairs[0]
    seen: list[bytes] = []

    async def story() -> None:
        readers = Readers(asyncio.get_running_loop(), SystemClock())

        def call() -> None:
            seen.append(left.recv(1))
            readers.remove(left)

        readers.add(left, call)
        right.close()
        await until(lambda: seen)

        assert seen == [b""]
        readers.close()
        readers.close()

    asyncio.run(story())


def test_what_a_spent_slice_left_is_called_first_in_the_next_turn(pairs: list[Pair]) -> None:
    clock = ManualClock()
    calls: list[int] = []

    def costly(number: int) -> None:
        calls.append(number)
        clock.advance(int(readers_module.SLICE_SECONDS * 1000))

    async def story() -> None:
        readers = Readers(asyncio.get_running_loop(), clock)
        for number, (left, right) in enumerate(pairs[:4]):
            # They stay ready, so the kernel names the same ones first each time.
            readers.add(left, lambda number=number: costly(number))  # type: ignore[misc]
            right.send(b"x")

        await until(lambda: len(calls) >= 8)

        assert sorted(calls[:4]) == sorted(calls[4:8]) == [0, 1, 2, 3]
        readers.close()

    asyncio.run(story())


def test_who_goes_on_later_does_so_one_in_a_turn_and_behind_those_that_are_ready(
    pairs: list[Pair],
) -> None:
    left, right = pairs[0]
    calls: list[str] = []

    async def story() -> None:
        readers = Readers(asyncio.get_running_loop(), SystemClock())
        readers.add(left, lambda: calls.append("ready"))
        right.send(b"x")
        for name in ("first", "second"):
            readers.go_on_later(lambda name=name: calls.append(name))  # type: ignore[misc]

        await until(lambda: "second" in calls)

        assert calls[:4] == ["ready", "first", "ready", "second"]
        readers.close()

    asyncio.run(story())


def test_who_waits_to_go_on_is_forgotten_when_all_is_closed() -> None:
    calls: list[str] = []

    async def story() -> None:
        readers = Readers(asyncio.get_running_loop(), SystemClock())
        readers.go_on_later(lambda: calls.append("late"))
        readers.close()

        for _ in range(10):
            await asyncio.sleep(0)

        assert calls == []

    asyncio.run(story())


def test_who_goes_wrong_when_it_goes_on_keeps_nobody_else_from_being_read(
    pairs: list[Pair],
) -> None:
    left, right = pairs[0]
    taken: list[bytes] = []
    troubles: list[object] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, told: troubles.append(told["exception"]))
        readers = Readers(loop, SystemClock())
        readers.add(left, lambda: taken.append(left.recv(1)))
        readers.go_on_later(lambda: taken.remove(b"?"))
        readers.go_on_later(lambda: taken.append(b"later"))
        await until(lambda: taken)
        right.send(b"a")
        await until(lambda: len(taken) == 2)

        assert taken == [b"later", b"a"]
        assert [type(error) for error in troubles] == [ValueError]
        readers.close()

    asyncio.run(story())
