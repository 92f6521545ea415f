"""A call ends once, and tells whoever waits when its connection goes."""

import pytest

from brokers.protocol.apis import APIS
from brokers.protocol.headers import Request
from brokers.protocol.messages.metadata import MetadataResponse
from brokers.server.call import Call, Closing
from brokers.server.peers import Peer


class Channel:
    """Notes what calls tell it."""

    def __init__(self) -> None:
        self.peer = Peer(address="192.0.2.1")
        self.is_closed = False
        self.told: list[str] = []
        self.watched: set[Closing] = set()

    def watch(self, call: Closing) -> None:
        self.watched.add(call)

    def hold(self) -> None:
        """There is no later request."""

    def let_go(self) -> None:
        """There is no later request."""

    def unwatch(self, call: Closing) -> None:
        self.watched.discard(call)

    def answered(self, call: Call, message: object) -> None:
        self.told.append("answered")

    def answered_encoded(self, call: Call, buffers: object) -> None:
        self.told.append("encoded")

    def skipped(self, call: Call) -> None:
        self.told.append("skipped")

    def disconnect(self, reason: str) -> None:
        self.told.append(reason)

    def failed(self) -> None:
        self.told.append("failed")


def call_on(channel: Channel) -> Call:
    return Call(Request(APIS[3], 5, 1, "test", memoryview(b""), 0), channel, 0.0)


def test_a_call_is_answered_once() -> None:
    channel = Channel()
    call = call_on(channel)

    call.answer(MetadataResponse())

    assert channel.told == ["answered"]
    with pytest.raises(AssertionError, match="Metadata was answered twice"):
        call.skip()


def test_whoever_waits_is_told_once_when_the_connection_goes() -> None:
    channel = Channel()
    call = call_on(channel)
    told: list[int] = []
    call.when_closed(lambda: told.append(1))
    call.when_closed(lambda: told.append(2))

    for _ in range(2):
        call.channel_closed()

    assert told == [2]


def test_after_the_answer_nobody_is_told() -> None:
    channel = Channel()
    call = call_on(channel)
    told: list[int] = []
    call.when_closed(lambda: told.append(1))
    assert channel.watched == {call}

    call.answer_encoded([b"body"])

    assert channel.watched == set()
    call.channel_closed()
    assert told == []


def test_a_connection_that_is_gone_already_tells_at_once() -> None:
    channel = Channel()
    channel.is_closed = True
    call = call_on(channel)
    told: list[int] = []

    call.when_closed(lambda: told.append(1))

    assert told == [1]
    assert not call.is_open


def test_a_call_ends_by_closing_its_connection() -> None:
    channel = Channel()

    call_on(channel).disconnect("no topic")
    call_on(channel).fail()

    assert channel.told == ["no topic", "failed"]
