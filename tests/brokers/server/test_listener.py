"""Connections that come, go quiet, send rubbish or never read; and the limits of the door."""

import asyncio
import errno
import os
import resource
import socket
import struct
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from brokers.protocol.connection import MAX_PIPELINED
from brokers.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from brokers.protocol.messages.metadata import MetadataRequest, MetadataResponse
from brokers.server import sweep
from brokers.server.call import Call
from brokers.server.client import MAX_OUTPUT_BYTES
from brokers.server.context import Context
from brokers.server.listener import WORDLESS_SECONDS, BindFailed
from tests.fakes.clock import ManualClock
from tests.fakes.listener import (
    HOST,
    ByteClient,
    RunningListener,
    handler,
    request_frame,
    running_listener,
)


def echo_versions(context: Context, call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    return ApiVersionsResponse(throttle_time_ms=call.request.correlation_id)


VERSIONS = handler(18, echo_versions)


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


async def ask_versions(client: ByteClient, version: int = 3) -> ApiVersionsResponse:
    answer: ApiVersionsResponse = await client.ask(ApiVersionsRequest(), version)
    return answer


def test_a_request_is_answered_on_the_connection_it_came_by() -> None:
    async def story() -> None:
        async with running_listener([VERSIONS]) as running:
            client = await running.connect()

            answer = await ask_versions(client)

            assert answer.throttle_time_ms == 1
            await client.close()

    run(story())


def test_requests_that_come_byte_by_byte_are_put_together() -> None:
    async def story() -> None:
        async with running_listener([VERSIONS]) as running:
            client = await running.connect()

            for byte in request_frame(ApiVersionsRequest(), 3, 7):
                client.writer.write(bytes([byte]))
                await client.writer.drain()
                await asyncio.sleep(0)

            answer = await client.answer(ApiVersionsResponse, 3)
            assert answer.throttle_time_ms == 7
            await client.close()

    run(story())


def test_pipelined_requests_are_answered_in_their_order() -> None:
    calls: list[Call] = []

    def later(context: Context, call: Call, request: ApiVersionsRequest) -> None:
        calls.append(call)

    async def story() -> None:
        async with running_listener([handler(18, later)]) as running:
            client = await running.connect()
            client.writer.write(
                b"".join(request_frame(ApiVersionsRequest(), 3, number) for number in range(5))
            )
            await running.until(lambda: len(calls) == 5)

            for call in reversed(calls):
                call.answer(ApiVersionsResponse(throttle_time_ms=call.request.correlation_id))

            answers = [await client.answer(ApiVersionsResponse, 3) for _ in range(5)]
            assert [answer.throttle_time_ms for answer in answers] == [0, 1, 2, 3, 4]
            await client.close()

    run(story())


def test_answers_that_were_gathered_leave_before_the_turn_is_over() -> None:
    calls: list[Call] = []

    def later(context: Context, call: Call, request: ApiVersionsRequest) -> None:
        calls.append(call)

    async def story() -> None:
        async with running_listener([handler(18, later)]) as running:
            client = await running.connect()
            for number in range(2):
                client.writer.write(request_frame(ApiVersionsRequest(), 3, number))
            await running.until(lambda: len(calls) == 2)
            metrics = running.listener.metrics

            def answer_both() -> None:
                for call in calls:
                    call.answer(ApiVersionsResponse(throttle_time_ms=call.request.correlation_id))
                assert metrics.bytes_out == 0, "they leave together"

            running.listener.gather(answer_both)

            assert metrics.bytes_out > 0
            answers = [await client.answer(ApiVersionsResponse, 3) for _ in range(2)]
            assert [answer.throttle_time_ms for answer in answers] == [0, 1]
            await client.close()

    run(story())


def test_an_unknown_version_of_api_versions_reaches_its_handler_and_leaves_as_version_0() -> None:
    seen: list[int] = []

    def note(context: Context, call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
        seen.append(call.version)
        return ApiVersionsResponse(error_code=35)

    async def story() -> None:
        async with running_listener([handler(18, note)]) as running:
            client = await running.connect()
            body = struct.pack(">hhih", 18, 99, 5, -1) + b"\0"
            client.writer.write(struct.pack(">i", len(body)) + body)

            frame = await client.frame()

            assert seen == [99]
            assert frame == struct.pack(">ihi", 5, 35, 0)
            await client.close()

    run(story())


@pytest.mark.parametrize(
    ("first", "word"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"POST /x HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (b"\xff\xff\xff\xff", "-1"),
        (struct.pack(">ihhi", 8, 999, 0, 1), "8 bytes"),
        (struct.pack(">ihhih", 10, 999, 0, 1, -1), "999"),
        (struct.pack(">ihhih", 10, 18, 0, 1, 500), "500"),
    ],
)
def test_bytes_of_something_else_end_the_connection_with_one_line(first: bytes, word: str) -> None:
    async def story() -> None:
        async with running_listener([VERSIONS]) as running:
            client, other = await running.connect(), await running.connect()

            client.writer.write(first)

            assert await client.is_closed()
            assert len(running.lines) == 1
            assert running.lines[0]["event"] == "connection.closed"
            assert word in running.lines[0]["detail"]
            assert (await ask_versions(other)).error_code == 0
            await client.close()
            await other.close()

    run(story())


def test_what_was_asked_in_front_of_bad_bytes_is_answered() -> None:
    async def story() -> None:
        async with running_listener([VERSIONS]) as running:
            client = await running.connect()

            client.writer.write(request_frame(ApiVersionsRequest(), 3, 9) + b"\xff\xff\xff\xff")

            assert (await client.answer(ApiVersionsResponse, 3)).throttle_time_ms == 9
            assert await client.is_closed()
            await client.close()

    run(story())


def test_many_bad_clients_of_a_kind_write_few_lines() -> None:
    async def story() -> None:
        async with running_listener([VERSIONS]) as running:
            for _ in range(20):
                client = await running.connect()
                client.writer.write(b"\xff\xff\xff\xff")
                assert await client.is_closed()
                await client.close()

            assert len(running.lines) == 5
            assert running.context.metrics.connections_closed == {"bad bytes": 20}

    run(story())


def test_a_quiet_connection_is_ended_and_a_waiting_one_is_not() -> None:
    calls: list[Call] = []

    def never(context: Context, call: Call, request: MetadataRequest) -> None:
        calls.append(call)

    async def story() -> None:
        clock = ManualClock()
        modules = [VERSIONS, handler(3, never)]
        async with running_listener(modules, clock=clock, idle_seconds=0.2) as running:
            quiet, waiting = await running.connect(), await running.connect()
            waiting.send(MetadataRequest(), 1)
            await running.until(lambda: len(calls) == 1)

            clock.advance(300)

            assert await quiet.is_closed()
            assert running.lines[0]["reason"] == "idle"
            assert calls[0].is_open
            await quiet.close()
            await waiting.close()

    run(story())


def test_a_limit_that_changes_holds_for_connections_that_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweep, "SWEEP_SECONDS", 0.02)

    async def story() -> None:
        clock = ManualClock()
        async with running_listener([VERSIONS], clock=clock, idle_seconds=3600) as running:
            client = await running.connect()
            assert (await ask_versions(client)).error_code == 0
            clock.advance(300_000)

            running.listener.limits = replace(running.listener.limits, idle_seconds=60)

            assert await client.is_closed()
            assert running.lines[0]["reason"] == "idle"
            await client.close()

    run(story())


def test_whoever_has_waited_for_an_answer_has_all_its_idle_time_again() -> None:
    calls: list[Call] = []

    def later(context: Context, call: Call, request: MetadataRequest) -> None:
        calls.append(call)

    async def story() -> None:
        clock = ManualClock()
        modules = [VERSIONS, handler(3, later)]
        async with running_listener(modules, clock=clock, idle_seconds=0.2) as running:
            client, quiet = await running.connect(), await running.connect()
            client.send(MetadataRequest(), 5)
            await running.until(lambda: len(calls) == 1)
            clock.advance(300)

            calls[0].answer(MetadataResponse(cluster_id="late"))

            assert await quiet.is_closed()  # so connections have been looked at
            assert (await client.answer(MetadataResponse, 5)).cluster_id == "late"
            assert (await ask_versions(client)).error_code == 0
            await client.close()
            await quiet.close()

    run(story())


def test_a_request_that_drips_in_is_given_up() -> None:
    async def story() -> None:
        clock = ManualClock()
        async with running_listener([VERSIONS], clock=clock, frame_seconds=0.2) as running:
            client = await running.connect()
            client.writer.write(struct.pack(">i", 1000) + b"x")
            inside = lambda: any(c.frame_mark >= 0 for c in running.listener.clients)  # noqa: E731
            await running.until(inside)
            client.writer.write(b"x")

            clock.advance(300)

            assert await client.is_closed()
            assert running.lines[0]["reason"] == "slow frame"
            await client.close()

    run(story())


def test_a_request_that_we_do_not_read_on_is_not_slow() -> None:
    held: list[Call] = []

    def answer_later(context: Context, call: Call, request: MetadataRequest) -> None:
        held.append(call)

    async def story() -> None:
        clock = ManualClock()
        modules = [handler(3, answer_later)]
        async with running_listener(modules, clock=clock, frame_seconds=0.2) as running:
            client = await running.connect()
            frame = request_frame(MetadataRequest(), 5)
            client.writer.write(frame * MAX_PIPELINED + frame[:2])
            await running.until(lambda: len(held) == MAX_PIPELINED)
            (served,) = running.listener.clients
            # Looked at once, it is in the middle of a request; and once more, much later.
            await running.until(lambda: served.frame_mark >= 0)
            clock.advance(300)
            seen = served.frame_since
            await running.until(lambda: served.is_closed or served.frame_since > seen)

            for call in held:
                call.answer(MetadataResponse())

            for _ in range(MAX_PIPELINED):
                await client.frame()
            await client.close()

    run(story())


def test_more_connections_than_allowed_are_refused_and_room_is_given_back() -> None:
    async def story() -> None:
        async with running_listener([VERSIONS], max_connections_per_ip=2) as running:
            first, second, third = [await running.connect() for _ in range(3)]

            assert await third.is_closed()
            assert running.lines[0]["event"] == "connection.refused"

            await first.close()
            await running.until(lambda: running.context.metrics.connections == 1)
            fourth = await running.connect()
            assert (await ask_versions(fourth)).error_code == 0
            for client in (second, third, fourth):
                await client.close()

    run(story())


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Takes every descriptor that the process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    top = max(map(int, os.listdir("/proc/self/fd"))) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (top, hard))
    try:
        while len(taken) < top:
            try:
                taken.append(os.dup(0))
            except OSError:
                break
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connections_that_send_nothing_give_way_to_a_newcomer() -> None:
    async def story() -> None:
        clock = ManualClock()
        async with running_listener([VERSIONS], clock=clock, max_connections=3) as running:
            served, idle, other = [await running.connect() for _ in range(3)]
            await ask_versions(served)
            await running.until(lambda: len(running.listener.clients) == 3)
            early = await running.connect()
            assert await early.is_closed(), "clients have some time for their first request"
            clock.advance(round(WORDLESS_SECONDS * 1000) + 1)

            newcomer = await running.connect()

            await ask_versions(newcomer)
            await ask_versions(served)
            assert len(running.listener.clients) == 3
            for client in (served, idle, other, early, newcomer):
                await client.close()

    run(story())


def test_without_descriptors_newcomers_are_refused_and_old_clients_served() -> None:
    async def story() -> None:
        async with running_listener([VERSIONS]) as running:
            client = await running.connect()
            assert (await ask_versions(client)).error_code == 0
            late = socket.socket()
            late.setblocking(False)

            with no_descriptor_left():
                late.connect_ex((HOST, running.port))
                await running.until(lambda: bool(running.lines))
                assert (await ask_versions(client)).error_code == 0

            assert running.lines[0]["event"] == "connection.refused"
            assert (await asyncio.get_running_loop().sock_recv(late, 1)) == b""
            late.close()
            newcomer = await running.connect()
            assert (await ask_versions(newcomer)).error_code == 0
            await newcomer.close()
            await client.close()

    run(story())


def test_a_client_that_never_reads_is_not_read_from() -> None:
    big = "x" * 30_000
    count = 0

    def answer(context: Context, call: Call, request: MetadataRequest) -> MetadataResponse:
        nonlocal count
        count += 1
        return MetadataResponse(cluster_id=big)

    async def story() -> None:
        async with running_listener([handler(3, answer)]) as running:
            client = await running.connect()
            frame = request_frame(MetadataRequest(), 5)
            total = 2_000
            client.writer.write(frame * total)
            held = lambda: running.context.metrics.output_bytes > 0  # noqa: E731
            await running.until(held)
            for _ in range(200):
                await asyncio.sleep(0)

            assert running.context.metrics.output_bytes <= MAX_OUTPUT_BYTES + 2 * len(big)
            assert count < total

            for _ in range(total):
                assert len(await client.frame()) > len(big)
            assert count == total
            await running.until(lambda: running.context.metrics.output_bytes == 0)
            await client.close()

    run(story())


def test_a_client_that_leaves_in_the_middle_of_a_request_is_forgotten() -> None:
    async def story() -> None:
        async with running_listener([VERSIONS]) as running:
            client = await running.connect()
            client.writer.write(struct.pack(">i", 1_000_000) + b"x" * 1000)
            await running.until(lambda: running.context.metrics.bytes_in > 1000)

            await client.close()

            await running.until(lambda: not running.listener.clients)
            assert running.lines == []

    run(story())


def test_an_answer_that_comes_late_never_reaches_a_connection_with_the_same_number() -> None:
    calls: list[Call] = []
    told: list[str] = []

    def later(context: Context, call: Call, request: MetadataRequest) -> None:
        call.when_closed(lambda: told.append("closed"))
        calls.append(call)

    async def story() -> None:
        async with running_listener([VERSIONS, handler(3, later)]) as running:
            client = await running.connect()
            client.send(MetadataRequest(), 5)
            await running.until(lambda: len(calls) == 1)
            await client.close()
            await running.until(lambda: not running.listener.clients)
            newcomer = await running.connect()
            await running.until(lambda: len(running.listener.clients) == 1)

            calls[0].answer(MetadataResponse(cluster_id="late"))

            assert told == ["closed"]
            assert not calls[0].is_open
            assert (await ask_versions(newcomer)).throttle_time_ms == 1
            await newcomer.close()

    run(story())


def test_a_stop_answers_what_is_in_flight_and_takes_nothing_new() -> None:
    calls: list[Call] = []

    def later(context: Context, call: Call, request: MetadataRequest) -> None:
        calls.append(call)

    async def story() -> None:
        async with running_listener([handler(3, later)]) as running:
            client, quiet = await running.connect(), await running.connect()
            client.send(MetadataRequest(), 5)
            await running.until(lambda: len(calls) == 1)

            stopping = asyncio.create_task(running.listener.stop(grace_seconds=10))
            assert await quiet.is_closed()
            client.send(MetadataRequest(), 5)
            calls[0].answer(MetadataResponse(cluster_id="in time"))

            assert (await client.answer(MetadataResponse, 5)).cluster_id == "in time"
            assert await client.is_closed()
            assert await stopping == 0
            assert len(calls) == 1
            with pytest.raises(ConnectionRefusedError):
                await running.connect()
            await quiet.close()
            await client.close()

    run(story())


def test_a_stop_waits_no_longer_than_it_may() -> None:
    def never(context: Context, call: Call, request: MetadataRequest) -> None:
        return None

    async def story() -> None:
        async with running_listener([handler(3, never)]) as running:
            client = await running.connect()
            client.send(MetadataRequest(), 5)
            await running.until(lambda: any(c.requests for c in running.listener.clients))

            cut = await running.listener.stop(grace_seconds=0.01)

            assert cut == 1
            assert await client.is_closed()
            await client.close()

    run(story())


def open_taken(running: RunningListener) -> Callable[[], int]:
    return lambda: running.listener.bind(HOST, running.port)


def test_a_taken_port_is_named() -> None:
    async def story() -> None:
        async with running_listener([VERSIONS]) as running:
            with pytest.raises(BindFailed, match=f"port {running.port} of {HOST} is taken"):
                open_taken(running)()

    run(story())
    assert errno.EADDRINUSE
