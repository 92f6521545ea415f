"""One connection: requests in order, answers in order, and what each state lets through."""

import struct
from collections.abc import Sized

import pytest

from brokers.protocol.apis import APIS
from brokers.protocol.connection import (
    ALLOWED,
    MAX_FRAME_BYTES_BEFORE_AUTH,
    MAX_HELD_BYTES,
    MAX_PIPELINED,
    NEXT,
    Connection,
    IllegalRequest,
    RawToken,
    State,
    Step,
)
from brokers.protocol.errors import DecodeError
from brokers.protocol.frames import FrameBuffers
from brokers.protocol.headers import Request

METADATA, API_VERSIONS, HANDSHAKE, AUTHENTICATE = 3, 18, 17, 36
VERSIONS = {METADATA: 8, API_VERSIONS: 2, HANDSHAKE: 1, AUTHENTICATE: 1}


class Peer:
    """A connection with the buffers that a listener would lend it."""

    def __init__(self, *, must_authenticate: bool = False) -> None:
        self.connection = Connection(APIS, FrameBuffers(), must_authenticate=must_authenticate)
        self.shared = memoryview(bytearray(65_536))

    def send(self, stream: bytes) -> list[Request | RawToken]:
        got: list[Request | RawToken] = []
        while stream:
            room = self.connection.room(self.shared)
            taken = min(len(room), len(stream))
            room[:taken] = stream[:taken]
            got += self.connection.received(taken)
            stream = stream[taken:]
        return got

    def request(self, key: int, correlation_id: int = 1, body: bytes = b"") -> Request:
        [request] = self.send(frame(key, correlation_id, body))
        assert isinstance(request, Request)
        return request


def frame(key: int, correlation_id: int = 1, body: bytes = b"") -> bytes:
    content = struct.pack(">hhih", key, VERSIONS[key], correlation_id, 2) + b"me" + body
    return struct.pack(">i", len(content)) + content


def sent(buffers: list[Sized]) -> bytes:
    return b"".join(bytes(part) for part in buffers)  # type: ignore[call-overload]


def answer_bytes(correlation_id: int, body: bytes) -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


def test_a_request_carries_what_its_handler_needs() -> None:
    request = Peer().request(METADATA, 42, b"body")

    assert (request.api.name, request.version, request.client_id) == ("Metadata", 8, "me")
    assert bytes(request.body) == b"body"


def test_a_request_that_is_all_that_came_may_be_taken_by_the_short_way() -> None:
    peer = Peer()
    whole = frame(METADATA, 42, b"body")
    peer.shared[: len(whole)] = whole

    request = peer.connection.only_request(peer.shared, len(whole))

    assert request is not None
    assert (request.place, request.correlation_id, bytes(request.body)) == (0, 42, b"body")
    assert sent(peer.connection.answer(request, [b"yes"])) == answer_bytes(42, b"yes")


@pytest.mark.parametrize(
    "received", [frame(METADATA)[:3], frame(METADATA)[:-1], frame(METADATA) * 2, b"\xff" * 20]
)
def test_the_short_way_leaves_all_else_to_the_long_one(received: bytes) -> None:
    peer = Peer()
    peer.shared[: len(received)] = received

    assert peer.connection.only_request(peer.shared, len(received)) is None
    assert peer.connection.waiting == 0


def test_the_short_way_lets_no_exchange_begin_where_nobody_is_asked() -> None:
    peer = Peer()
    whole = frame(HANDSHAKE)
    peer.shared[: len(whole)] = whole

    with pytest.raises(IllegalRequest):
        peer.connection.only_request(peer.shared, len(whole))


def test_no_more_requests_come_while_the_owner_cannot_send() -> None:
    peer = Peer()
    peer.connection.is_paused = True

    assert not peer.connection.can_read


def test_answers_leave_in_the_order_of_requests_whatever_order_they_are_given_in() -> None:
    peer = Peer()
    first, second, third = peer.send(frame(3, 1) + frame(3, 2) + frame(3, 3))
    assert isinstance(first, Request)
    assert isinstance(second, Request)
    assert isinstance(third, Request)

    assert peer.connection.answer(third, [b"c"]) == []
    assert peer.connection.answer(second, [b"b"]) == []
    leaving = sent(peer.connection.answer(first, [b"a"]))

    assert leaving == answer_bytes(1, b"a") + answer_bytes(2, b"b") + answer_bytes(3, b"c")
    assert peer.connection.waiting == 0


def test_a_skipped_request_lets_those_behind_it_go() -> None:
    peer = Peer()
    first, second = peer.send(frame(3, 1) + frame(3, 2))
    assert isinstance(first, Request)
    assert isinstance(second, Request)

    assert peer.connection.answer(second, [b"b"]) == []
    assert sent(peer.connection.skip(first)) == answer_bytes(2, b"b")


def test_an_answer_passes_its_buffers_on_without_copying_them() -> None:
    peer = Peer()
    records = memoryview(bytes(1000))

    buffers = peer.connection.answer(peer.request(METADATA), [b"head", records])

    assert buffers[2] is records
    assert struct.unpack_from(">i", sent(buffers))[0] == 4 + 4 + 1000


def test_answering_twice_is_a_bug_and_not_an_act_of_the_peer() -> None:
    peer = Peer()
    request = peer.request(METADATA)
    peer.connection.answer(request, [])

    with pytest.raises(AssertionError, match="given before"):
        peer.connection.answer(request, [])


def test_no_more_requests_come_while_too_many_answers_are_owed() -> None:
    peer = Peer()
    requests = peer.send(b"".join(frame(METADATA, number) for number in range(MAX_PIPELINED + 3)))
    assert len(requests) == MAX_PIPELINED
    assert not peer.connection.can_read
    first = requests[0]
    assert isinstance(first, Request)

    peer.connection.answer(first, [])
    [late] = peer.connection.resume()

    assert isinstance(late, Request)
    assert late.correlation_id == MAX_PIPELINED
    assert not peer.connection.can_read


def test_no_more_requests_come_while_too_many_bytes_wait_for_their_turn() -> None:
    peer = Peer()
    first, second, third = peer.send(frame(3, 1) + frame(3, 2) + frame(3, 3))
    assert isinstance(first, Request)
    assert isinstance(second, Request)
    assert isinstance(third, Request)

    peer.connection.answer(second, [bytes(MAX_HELD_BYTES // 2)])
    assert peer.connection.can_read
    peer.connection.answer(third, [bytes(MAX_HELD_BYTES // 2)])
    assert not peer.connection.can_read

    peer.connection.answer(first, [])
    assert peer.connection.can_read


@pytest.mark.parametrize("cut", range(1, 17))
def test_a_request_is_the_same_however_its_bytes_are_cut(cut: int) -> None:
    peer = Peer()
    stream = frame(METADATA, 9, b"body")

    got = peer.send(stream[:cut])
    got += peer.send(stream[cut:])

    assert [bytes(request.body) for request in got if isinstance(request, Request)] == [b"body"]


def test_a_broken_header_closes_the_connection() -> None:
    with pytest.raises(DecodeError):
        Peer().send(struct.pack(">ihhih", 10, 999, 0, 1, -1))


def test_a_closed_connection_sends_nothing_more() -> None:
    peer = Peer()
    request = peer.request(METADATA)

    peer.connection.close()

    assert peer.connection.answer(request, [b"late"]) == []


def test_a_closed_connection_yields_nothing_more() -> None:
    peer = Peer()
    stream = frame(METADATA) + frame(METADATA)
    room = peer.connection.room(peer.shared)
    room[: len(stream)] = stream
    requests = peer.connection.received(len(stream))
    next(requests)

    peer.connection.close()

    assert list(requests) == []
    assert not peer.connection.can_read


class TestAuthentication:
    def test_a_stranger_may_ask_for_versions_and_begin(self) -> None:
        peer = Peer(must_authenticate=True)

        peer.request(API_VERSIONS)
        peer.request(API_VERSIONS)
        peer.request(HANDSHAKE)

    @pytest.mark.parametrize("key", [HANDSHAKE, AUTHENTICATE])
    def test_where_nobody_is_asked_there_is_no_exchange(self, key: int) -> None:
        with pytest.raises(IllegalRequest):
            Peer().request(key)

    def test_a_known_peer_cannot_begin_the_oldest_exchange(self) -> None:
        """Raw tokens could not be told from the requests that are still on their way."""
        peer = Peer(must_authenticate=True)
        peer.connection.take(Step.MECHANISM_AGREED)
        peer.connection.take(Step.PROVED)

        with pytest.raises(IllegalRequest):
            peer.send(struct.pack(">ihhih", 10, HANDSHAKE, 0, 1, -1))

    def test_a_token_waits_for_the_verdict_on_the_one_before(self) -> None:
        peer = Peer(must_authenticate=True)
        peer.connection.take(Step.MECHANISM_AGREED)

        [first] = peer.send(frame(AUTHENTICATE, 1) + frame(AUTHENTICATE, 2))
        assert isinstance(first, Request)
        assert not peer.connection.can_read
        peer.connection.answer(first, [])
        [second] = peer.connection.resume()

        assert isinstance(second, Request)
        assert second.correlation_id == 2

    def test_after_a_refusal_only_the_answer_that_says_so_leaves(self) -> None:
        peer = Peer(must_authenticate=True)
        peer.connection.take(Step.MECHANISM_AGREED)
        [token] = peer.send(frame(AUTHENTICATE, 1) + frame(AUTHENTICATE, 2))
        assert isinstance(token, Request)

        peer.connection.take(Step.REFUSED)

        assert sent(peer.connection.answer(token, [b"no"])) == answer_bytes(1, b"no")
        assert not peer.connection.can_read

    @pytest.mark.parametrize("key", [METADATA, AUTHENTICATE])
    def test_a_stranger_may_do_nothing_else(self, key: int) -> None:
        peer = Peer(must_authenticate=True)

        with pytest.raises(IllegalRequest) as refusal:
            peer.request(key)

        assert refusal.value.request.api.key == key
        assert refusal.value.state is State.STRANGER

    @pytest.mark.parametrize("key", [METADATA, API_VERSIONS, HANDSHAKE])
    def test_an_exchange_must_not_be_interrupted(self, key: int) -> None:
        peer = Peer(must_authenticate=True)
        peer.connection.take(Step.MECHANISM_AGREED)

        with pytest.raises(IllegalRequest):
            peer.request(key)

    def test_a_proved_peer_may_do_everything_but_send_tokens_unasked(self) -> None:
        peer = Peer(must_authenticate=True)
        peer.connection.take(Step.MECHANISM_AGREED)
        peer.connection.take(Step.PROVED)

        peer.request(METADATA)
        with pytest.raises(IllegalRequest):
            peer.request(AUTHENTICATE)

    def test_proving_again_lets_nothing_through_until_it_is_done(self) -> None:
        """KIP-368: a connection re-authenticates in place."""
        peer = Peer(must_authenticate=True)
        for step in (Step.MECHANISM_AGREED, Step.PROVED, Step.MECHANISM_AGREED):
            peer.connection.take(step)

        token = peer.request(AUTHENTICATE)
        peer.connection.answer(token, [])
        with pytest.raises(IllegalRequest):
            peer.request(METADATA)

        peer.connection.take(Step.PROVED)
        peer.request(METADATA)

    def test_after_the_oldest_handshake_frames_are_bare_tokens(self) -> None:
        peer = Peer(must_authenticate=True)
        handshake = peer.request(HANDSHAKE)
        peer.connection.answer(handshake, [])
        peer.connection.take(Step.RAW_MECHANISM_AGREED)

        [token] = peer.send(struct.pack(">i", 6) + b"\x00al\x00pw")

        assert isinstance(token, RawToken)
        assert bytes(token.token) == b"\x00al\x00pw"
        assert sent(peer.connection.answer_token(token, b"ok")) == b"\x00\x00\x00\x02ok"

    def test_a_step_rules_over_the_next_request_in_the_same_bytes(self) -> None:
        peer = Peer(must_authenticate=True)
        stream = frame(HANDSHAKE) + struct.pack(">i", 3) + b"tok"
        room = peer.connection.room(peer.shared)
        room[: len(stream)] = stream
        requests = peer.connection.received(len(stream))

        handshake = next(requests)
        assert isinstance(handshake, Request)
        peer.connection.take(Step.RAW_MECHANISM_AGREED)
        peer.connection.answer(handshake, [])

        assert isinstance(next(requests), RawToken)

    def test_strangers_are_held_to_small_frames(self) -> None:
        peer = Peer(must_authenticate=True)
        large = frame(API_VERSIONS, body=bytes(MAX_FRAME_BYTES_BEFORE_AUTH))
        with pytest.raises(DecodeError, match=str(MAX_FRAME_BYTES_BEFORE_AUTH)):
            peer.send(large)

        known = Peer(must_authenticate=True)
        known.connection.take(Step.MECHANISM_AGREED)
        known.connection.take(Step.PROVED)
        assert len(known.send(large)) == 1

    @pytest.mark.parametrize("state", list(State))
    @pytest.mark.parametrize("step", list(Step))
    def test_every_step_in_every_state_follows_the_table(self, state: State, step: Step) -> None:
        connection = Peer().connection
        connection.state = state

        if (state, step) in NEXT:
            connection.take(step)
            assert connection.state is NEXT[state, step]
        else:
            with pytest.raises(AssertionError, match=step.name):
                connection.take(step)

    def test_every_state_that_reads_requests_has_a_row(self) -> None:
        assert set(State) - set(ALLOWED) == {State.RAW_TOKENS, State.CLOSING, State.CLOSED}
        assert set(APIS) - ALLOWED[State.OPEN] == {AUTHENTICATE}
        assert set(APIS) - ALLOWED[State.ANONYMOUS] == {HANDSHAKE, AUTHENTICATE}
