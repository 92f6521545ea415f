"""Sockets that are ready are called, fairly, and never after they were taken out."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from brokers.server import readers as readers_module
from brokers.server.readers import Readers
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
        readers = Readers(asyncio.get_running_loop())
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
        readers = Readers(asyncio.get_running_loop())

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
        readers = Readers(asyncio.get_running_loop())
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
        readers = Readers(asyncio.get_running_loop())

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
