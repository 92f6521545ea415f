"""Handlers as functions and as tasks, their bugs, and what they are told of the way in."""

import asyncio
import struct
from collections.abc import Coroutine
from functools import partial
from typing import Any

import pytest

from brokers.protocol.codec import codec
from brokers.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from brokers.protocol.messages.metadata import MetadataRequest, MetadataResponse
from brokers.server import tasks
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.dispatch import MAX_TRAILING_BYTES
from tests.fakes.listener import handler, request_frame, running_listener


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


def answer_versions(
    context: Context, call: Call, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    return ApiVersionsResponse()


def test_a_handler_that_waits_holds_up_nobody_else() -> None:
    started = asyncio.Event()

    async def wait(context: Context, call: Call, request: MetadataRequest) -> MetadataResponse:
        started.set()
        await gate.wait()
        return MetadataResponse(cluster_id="at last")

    async def story() -> None:
        async with running_listener([handler(18, answer_versions), handler(3, wait)]) as running:
            slow, quick = await running.connect(), await running.connect()
            slow.send(MetadataRequest(), 5)
            await started.wait()

            assert (await quick.ask(ApiVersionsRequest(), 0)).error_code == 0
            gate.set()

            assert (await slow.answer(MetadataResponse, 5)).cluster_id == "at last"
            await slow.close()
            await quick.close()

    gate = asyncio.Event()
    run(story())


def with_body(body: bytes, version: int) -> bytes:
    """A Metadata request with a body of its own."""
    frame = request_frame(MetadataRequest(topics=[]), version)
    length = len(b"".join(codec(MetadataRequest, version).encode(MetadataRequest(topics=[]))))
    head = frame[4:-length]
    return struct.pack(">i", len(head) + len(body)) + head + body


@pytest.mark.parametrize("version", range(9, 14))
def test_bytes_behind_the_last_field_are_ignored_as_in_kafka(version: int) -> None:
    seen: list[MetadataRequest] = []

    def answer(context: Context, call: Call, request: MetadataRequest) -> MetadataResponse:
        seen.append(request)
        return MetadataResponse()

    # librdkafka before the fix of its issue 5049: a null array in four bytes where one belongs.
    flags = 3 if version < 11 else 2
    all_topics = bytes(4) + b"\1" + bytes(flags - 1) + b"\0"
    none = b"".join(codec(MetadataRequest, version).encode(MetadataRequest(topics=[])))

    async def story() -> None:
        async with running_listener([handler(3, answer)]) as running:
            client = await running.connect()
            for body in (all_topics, none + bytes(MAX_TRAILING_BYTES)):
                client.writer.write(with_body(body, version))
                await client.answer(MetadataResponse, version)
            client.writer.write(with_body(none + bytes(MAX_TRAILING_BYTES + 1), version))
            assert await client.is_closed()
            await client.close()

    run(story())
    assert [request.topics for request in seen] == [None, []]
    assert not seen[0].allow_auto_topic_creation


def test_an_agent_that_hangs_keeps_no_reader_from_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "MAX_RUNNING", 1)
    started = asyncio.Event()

    async def hang(context: Context, call: Call, request: MetadataRequest) -> MetadataResponse:
        started.set()
        return await asyncio.get_running_loop().create_future()

    async def look(
        context: Context, call: Call, request: ApiVersionsRequest
    ) -> ApiVersionsResponse:
        return ApiVersionsResponse()

    async def story() -> None:
        modules = [handler(18, look), handler(3, hang, waits=True)]
        async with running_listener(modules) as running:
            admin, reader = await running.connect(), await running.connect()
            admin.send(MetadataRequest(), 5)
            await started.wait()

            assert (await reader.ask(ApiVersionsRequest(), 0)).error_code == 0
            await admin.close()
            await reader.close()

    run(story())


def test_more_waiting_handlers_than_may_run_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MAX_RUNNING", 2)
    running_now: list[int] = []
    most = 0

    async def count(context: Context, call: Call, request: MetadataRequest) -> MetadataResponse:
        nonlocal most
        running_now.append(1)
        most = max(most, len(running_now))
        await asyncio.sleep(0)
        running_now.pop()
        return MetadataResponse(cluster_id=str(call.request.correlation_id))

    async def story() -> None:
        async with running_listener([handler(3, count)]) as running:
            client = await running.connect()
            for number in range(20):
                client.send(MetadataRequest(), 5, number)

            answers = [await client.answer(MetadataResponse, 5) for _ in range(20)]

            assert [answer.cluster_id for answer in answers] == [str(n) for n in range(20)]
            assert most == 2
            await client.close()

    run(story())


def test_too_many_waiting_requests_end_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MAX_RUNNING", 1)
    monkeypatch.setattr(tasks, "MAX_WAITING", 2)

    async def never(context: Context, call: Call, request: MetadataRequest) -> None:
        await asyncio.get_running_loop().create_future()

    async def story() -> None:
        async with running_listener([handler(3, never)]) as running:
            client = await running.connect()
            for _ in range(4):
                client.send(MetadataRequest(), 5)

            assert await client.is_closed()
            assert "2 requests wait" in running.lines[0]["detail"]
            await client.close()

    run(story())


def failing(context: Context, call: Call, request: MetadataRequest) -> MetadataResponse:
    raise ZeroDivisionError("a bug")


async def failing_later(context: Context, call: Call, request: MetadataRequest) -> MetadataResponse:
    raise ZeroDivisionError("a bug")


def answering_nonsense(context: Context, call: Call, request: MetadataRequest) -> MetadataResponse:
    nonsense: Any = object()
    return MetadataResponse(cluster_id=nonsense)


def failing_beside(context: Context, call: Call, request: MetadataRequest) -> None:
    context.long_work.start(call, partial(failing_later, context, call, request))


@pytest.mark.parametrize("buggy", [failing, failing_later, failing_beside, answering_nonsense])
def test_a_bug_in_a_handler_costs_its_connection_and_one_line(buggy: Any) -> None:
    async def story() -> None:
        modules = [handler(3, buggy), handler(18, answer_versions)]
        async with running_listener(modules) as running:
            client, other = await running.connect(), await running.connect()

            client.send(MetadataRequest(), 5)

            assert await client.is_closed()
            assert [line["event"] for line in running.lines] == ["handler.failed"]
            assert running.lines[0]["api"] == "Metadata"
            assert running.context.metrics.handler_failures == 1
            assert (await other.ask(ApiVersionsRequest(), 0)).error_code == 0
            await client.close()
            await other.close()

    run(story())


def test_the_time_of_each_request_is_counted_by_its_api() -> None:
    async def story() -> None:
        async with running_listener([handler(18, answer_versions)]) as running:
            client = await running.connect()

            for _ in range(3):
                await client.ask(ApiVersionsRequest(), 3)

            assert running.context.metrics.requests["ApiVersions"].count == 3
            await client.close()

    run(story())


def test_a_skipped_request_gets_no_answer_and_lets_the_next_one_pass() -> None:
    def skip_the_first(context: Context, call: Call, request: MetadataRequest) -> Any:
        if call.request.correlation_id == 1:
            call.skip()
            return None
        return MetadataResponse(cluster_id="second")

    async def story() -> None:
        async with running_listener([handler(3, skip_the_first)]) as running:
            client = await running.connect()
            client.send(MetadataRequest(), 5, 1)
            client.send(MetadataRequest(), 5, 2)

            assert (await client.answer(MetadataResponse, 5)).cluster_id == "second"
            await client.close()

    run(story())


def test_a_handler_may_give_up_on_a_connection() -> None:
    def refuse(context: Context, call: Call, request: MetadataRequest) -> None:
        call.disconnect("acks=0 and the topic is unknown")

    async def story() -> None:
        async with running_listener([handler(3, refuse)]) as running:
            client = await running.connect()
            client.send(MetadataRequest(), 5)

            assert await client.is_closed()
            assert running.lines[0]["detail"] == "acks=0 and the topic is unknown"
            await client.close()

    run(story())
