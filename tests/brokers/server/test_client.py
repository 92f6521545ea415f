"""What one connection holds of others' things, files above all, and that it gives it back."""

import asyncio
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from brokers.server import client as client_module
from brokers.server import listener
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.file_range import FileRange
from brokers.server.readers import Readers
from brokers.storage.handles import LogFile
from brokers.storage.reads import LogSlice
from tests.fakes.listener import handler, request_frame, running_listener, until

SIZE = 8 * 1024 * 1024


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[LogFile]:
    path = tmp_path / "0.log"
    path.write_bytes(os.urandom(SIZE))
    file = LogFile(str(path))
    file.fd = os.open(path, os.O_RDONLY)
    yield file
    os.close(file.fd)


def answer_of(file: LogFile, length: int = SIZE) -> FetchResponse:
    data: Any = FileRange(LogSlice(file, 0, length, 0))
    partition = PartitionData(partition_index=0, records=data)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])


def collecting(calls: list[Call]) -> Any:
    def keep(context: Context, call: Call, request: FetchRequest) -> None:
        calls.append(call)

    return handler(1, keep)


def test_file_bytes_arrive_behind_their_header(log_file: LogFile) -> None:
    def answer(context: Context, call: Call, request: FetchRequest) -> FetchResponse:
        return answer_of(log_file)

    expected = Path(log_file.path).read_bytes()

    async def story() -> None:
        async with running_listener([handler(1, answer)]) as running:
            client = await running.connect()

            for _ in range(3):
                fetched = await client.ask(FetchRequest(), 11)
                assert bytes(fetched.responses[0].partitions[0].records) == expected

            assert log_file.pins == 0
            assert running.context.metrics.bytes_out > 3 * SIZE
            await client.close()

    asyncio.run(story())


def test_a_reader_that_leaves_in_the_middle_lets_go_of_the_file(log_file: LogFile) -> None:
    calls: list[Call] = []

    async def story() -> None:
        async with running_listener([collecting(calls)]) as running:
            client = await running.connect()
            client.send(FetchRequest(), 11)
            await until(lambda: calls)
            calls[0].answer(answer_of(log_file))
            await client.reader.readexactly(100)
            assert log_file.pins == 1

            client.writer.transport.abort()

            await until(lambda: not running.listener.clients)
            assert log_file.pins == 0
            assert running.context.metrics.output_bytes == 0

    asyncio.run(story())


def test_answers_that_wait_for_their_turn_let_go_when_the_client_leaves(
    log_file: LogFile,
) -> None:
    calls: list[Call] = []

    async def story() -> None:
        async with running_listener([collecting(calls)]) as running:
            client = await running.connect()
            client.send(FetchRequest(), 11)
            client.send(FetchRequest(), 11)
            await until(lambda: len(calls) == 2)
            calls[1].answer(answer_of(log_file))
            assert log_file.pins == 1

            await client.close()
            await until(lambda: not running.listener.clients)

            assert log_file.pins == 0
            calls[0].answer(answer_of(log_file))
            assert log_file.pins == 0

    asyncio.run(story())


def test_an_answer_that_cannot_be_encoded_lets_go_of_its_files(log_file: LogFile) -> None:
    def answer(context: Context, call: Call, request: FetchRequest) -> FetchResponse:
        nonsense: Any = "no number"
        made = answer_of(log_file)
        made.responses[0].partitions[0].high_watermark = nonsense
        return made

    async def story() -> None:
        async with running_listener([handler(1, answer)]) as running:
            client = await running.connect()
            client.send(FetchRequest(), 11)

            assert await client.is_closed()
            assert log_file.pins == 0
            await client.close()

    asyncio.run(story())


def test_a_reader_of_much_does_not_starve_others(log_file: LogFile) -> None:
    def answer(context: Context, call: Call, request: FetchRequest) -> FetchResponse:
        return answer_of(log_file, 100 if request.max_bytes == 100 else SIZE)

    async def story() -> None:
        async with running_listener([handler(1, answer)]) as running:
            greedy, modest = await running.connect(), await running.connect()
            for _ in range(8):
                greedy.send(FetchRequest(), 11)
            await until(lambda: running.context.metrics.output_bytes > 0)

            for _ in range(20):
                await modest.ask(FetchRequest(max_bytes=100), 11)

            for _ in range(8):
                assert len(await greedy.frame()) > SIZE
            assert log_file.pins == 0
            await greedy.close()
            await modest.close()

    asyncio.run(story())


def test_a_handler_that_asked_to_be_told_and_then_answers_is_told_no_more() -> None:
    told: list[str] = []

    def answer(context: Context, call: Call, request: FetchRequest) -> FetchResponse:
        call.when_closed(lambda: told.append("closed"))
        return FetchResponse()

    async def story() -> None:
        async with running_listener([handler(1, answer)]) as running:
            client = await running.connect()
            await client.ask(FetchRequest(), 11)

            await client.close()
            await until(lambda: not running.listener.clients)

            assert told == []

    asyncio.run(story())


def test_what_cannot_happen_ends_its_connection_and_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        async with running_listener([collecting([])]) as running:
            client = await running.connect()

            def fail(*_: object) -> None:
                raise ZeroDivisionError("a bug")

            monkeypatch.setattr(running.listener.dispatch, "handle", fail)
            client.send(FetchRequest(), 11)

            assert await client.is_closed()
            assert [line["event"] for line in running.lines] == ["connection.failed"]
            await client.close()

    asyncio.run(story())


def test_who_is_disconnected_has_the_answers_of_what_it_asked_before() -> None:
    def answer(context: Context, call: Call, request: FetchRequest) -> FetchResponse | None:
        if call.request.correlation_id == 2:
            call.disconnect("enough")
            return None
        return FetchResponse()

    async def story() -> None:
        async with running_listener([handler(1, answer)]) as running:
            client = await running.connect()

            client.writer.write(
                b"".join(request_frame(FetchRequest(), 11, number) for number in (1, 2))
            )

            assert (await client.frame())[:4] == (1).to_bytes(4, "big")
            assert await client.is_closed()
            await client.close()

    asyncio.run(story())


def test_when_all_together_take_too_little_nobody_who_lags_is_read(
    log_file: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What one may have waiting is no bound here, so that only the sum is.
    monkeypatch.setattr(client_module, "MAX_OUTPUT_BYTES", 1 << 40)
    monkeypatch.setattr(listener, "MAX_TOTAL_OUTPUT_BYTES", 1000)
    calls: list[int] = []

    def answer(context: Context, call: Call, request: FetchRequest) -> FetchResponse:
        calls.append(call.request.correlation_id)
        return answer_of(log_file, SIZE if call.request.correlation_id == 1 else 100)

    async def story() -> None:
        async with running_listener([handler(1, answer)]) as running:
            client, quick = await running.connect(), await running.connect()
            client.send(FetchRequest(), 11, 1)
            await until(lambda: running.context.metrics.output_bytes > 1000)
            client.writer.write(
                b"".join(request_frame(FetchRequest(), 11, number) for number in range(2, 9))
            )
            await until(lambda: len(calls) > 1)

            await quick.ask(FetchRequest(), 11)

            assert calls.count(2) == 1
            assert 8 not in calls
            for _ in range(8):
                await client.frame()
            assert 8 in calls
            await until(lambda: running.context.metrics.output_bytes == 0)
            await client.close()
            await quick.close()

    asyncio.run(story())


def test_a_file_that_is_shorter_than_promised_ends_its_reader_and_nothing_else(
    tmp_path: Path,
) -> None:
    path = tmp_path / "1.log"
    path.write_bytes(bytes(50))
    file = LogFile(str(path))
    errors: list[Any] = []

    def answer(context: Context, call: Call, request: FetchRequest) -> FetchResponse:
        return answer_of(file, 100)

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, told: errors.append(told))
        async with running_listener([handler(1, answer)]) as running:
            client = await running.connect()

            client.send(FetchRequest(), 11)

            assert await client.is_closed()
            assert [line["detail"] for line in running.lines] == ["50 bytes at 50 are missing"]
            assert (file.pins, running.context.metrics.output_bytes) == (0, 0)
            assert not errors
            await client.close()

    file.fd = os.open(path, os.O_RDONLY)
    try:
        asyncio.run(story())
    finally:
        os.close(file.fd)


def test_who_cannot_be_watched_is_sent_away_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add = Readers.add
    room = [0]

    def limited(self: Readers, sock: Any, call: Any) -> None:
        if not room[0]:
            raise OSError(errno.ENOSPC, "no room")
        room[0] -= 1
        add(self, sock, call)

    monkeypatch.setattr(Readers, "add", limited)

    async def story() -> None:
        async with running_listener([handler(1, lambda *_: FetchResponse())]) as running:
            refused = await running.connect()
            assert await refused.is_closed()
            assert not running.listener.clients
            assert "no room" in running.lines[0]["detail"]

            room[0] = 1
            client = await running.connect()
            await client.ask(FetchRequest(), 11)

            await client.close()
            await refused.close()

    asyncio.run(story())


def test_who_cannot_be_watched_for_its_output_is_sent_away(
    log_file: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(context: Context, call: Call, request: FetchRequest) -> FetchResponse:
        return answer_of(log_file)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    async def story() -> None:
        async with running_listener([handler(1, answer)]) as running:
            client = await running.connect()
            monkeypatch.setattr(running.listener.loop, "add_writer", full)

            client.send(FetchRequest(), 11)

            await until(lambda: running.lines)
            monkeypatch.undo()
            assert not running.listener.clients
            assert (log_file.pins, running.context.metrics.output_bytes) == (0, 0)
            assert await client.is_closed()
            await client.close()

    asyncio.run(story())


def test_one_connection_that_fails_while_answers_leave_keeps_no_other_from_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Call] = []
    flush = client_module.Client.flush_collected

    def fail_once(self: client_module.Client) -> None:
        monkeypatch.setattr(client_module.Client, "flush_collected", flush)
        raise ZeroDivisionError("a bug")

    async def story() -> None:
        async with running_listener([collecting(calls)]) as running:
            first, second = await running.connect(), await running.connect()
            for client in (first, second):
                client.send(FetchRequest(), 11)
            await until(lambda: len(calls) == 2)
            monkeypatch.setattr(client_module.Client, "flush_collected", fail_once)

            for call in calls:
                call.answer(FetchResponse())

            await second.frame()
            assert await first.is_closed()
            assert [line["event"] for line in running.lines] == ["connection.failed"]
            await first.close()
            await second.close()

    asyncio.run(story())
