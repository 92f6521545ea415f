"""Searches by way of a running broker's inspection port, and who is refused one."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from brokers.inspection.client import Inspection, InspectionFailed
from brokers.protocol.messages.produce import PartitionProduceData
from brokers.protocol.records.builder import BatchBuilder
from brokers.search import worker as search_worker
from brokers.search.question import MAX_QUESTION_BYTES
from brokers.server import searches, workers
from tests.brokers.server.express.test_late import PRODUCE, write
from tests.brokers.server.test_inspection_port import KNOWN, got, port_of
from tests.builders.logs import NOW_MS
from tests.fakes.broker import SECRET, RunningBroker, running_broker
from tests.fakes.listener import WAIT_SECONDS, until

SLOW_WORKER = """
import json, sys, time
sys.stdin.buffer.read()
while True:
    print(json.dumps({"kind": "progress"}), flush=True)
    time.sleep(0.02)
"""
BROKEN_WORKER = """
import sys
sys.stdin.buffer.read()
print('{"kind": "progress"}', flush=True)
sys.exit("the disk is on fire")
"""


async def fill(running: RunningBroker, values: list[bytes]) -> None:
    client = await running.connect()
    for number, value in enumerate(values):
        builder = BatchBuilder()
        builder.append(b"k%d" % number, value, [], NOW_MS + number * 1000)
        message = write()
        data = PartitionProduceData(index=0, records=memoryview(builder.build()))
        message.topic_data[0].partition_data = [data]
        await client.ask(message, PRODUCE)
    await client.close()


def with_records(
    tmp_path: Path, story: Callable[[RunningBroker], Any], values: list[bytes] | None = None
) -> None:
    async def whole() -> None:
        configs = {"retention.ms": "-1"}
        async with running_broker(tmp_path, topics={"orders": 1}, configs=configs) as running:
            await fill(running, values if values is not None else [b"hay", b"needle", b"hay"])
            outcome = story(running)
            if asyncio.iscoroutine(outcome):
                await outcome

    asyncio.run(whole())


def question(**fields: Any) -> dict[str, Any]:
    return {"topic": "orders", "partition": 0, **fields}


async def searched(running: RunningBroker, **fields: Any) -> list[Any]:
    def ask() -> list[Any]:
        with Inspection(running.host, running.ready.inspection_port, SECRET) as inspection:
            return list(inspection.search(question(**fields)))

    return await running.in_thread(ask)


def offsets(lines: list[Any]) -> list[int]:
    return [line["offset"] for line in lines if line["kind"] == "hit"]


async def posted(running: RunningBroker, body: bytes, headers: str = KNOWN) -> tuple[int, str]:
    async with port_of(running) as client:
        rest = f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        client.writer.write(f"POST /search HTTP/1.1\r\nHost: x\r\n{headers}{rest}".encode() + body)
        async with asyncio.timeout(WAIT_SECONDS):
            answer = (await client.reader.read(-1)).decode()
    return int(answer.split(" ")[1]), answer


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a program in the place of the one that searches."""

    def replace(program: str) -> None:
        folder = tmp_path / "work"
        folder.mkdir()
        (folder / "other.py").write_text(program, encoding="ascii")
        monkeypatch.setattr(workers, "_ROOT", str(folder))
        monkeypatch.setattr(search_worker, "__name__", "other")

    return replace


@pytest.mark.slow  # six processes, one after the other
def test_records_are_found_by_what_is_in_them_by_offset_and_by_time(tmp_path: Path) -> None:
    async def story(running: RunningBroker) -> None:
        lines = await searched(running, where={"contains": {"text": "needle"}})
        assert offsets(lines) == [1]
        assert lines[-1]["verdict"] == "complete"
        assert (lines[-1]["next_offset"], lines[-1]["records"]) == (3, 3)
        assert offsets(await searched(running, **{"from": {"offset": 1}, "to": {"offset": 2}})) == [
            1
        ]
        by_time = {"from": {"time": NOW_MS + 1}, "to": {"time": NOW_MS + 2_000}}
        assert offsets(await searched(running, **by_time)) == [1]
        late = {"from": {"time": NOW_MS + 10_000_000}}
        assert offsets(await searched(running, **late)) == []
        committed = await searched(running, isolation="read_committed")
        assert offsets(committed) == [0, 1, 2]

    with_records(tmp_path, story)


def test_nothing_beyond_the_high_watermark_is_read(tmp_path: Path) -> None:
    async def story(running: RunningBroker) -> None:
        partition = running.context.replicas.led(("orders", 0))
        assert partition is not None
        partition.high_watermark = 2

        lines = await searched(running, to={"offset": 99})

        assert offsets(lines) == [0, 1]

    with_records(tmp_path, story)


def test_what_is_no_question_is_refused_before_anything_begins(tmp_path: Path) -> None:
    async def story(running: RunningBroker) -> None:
        good = json.dumps(question()).encode()
        assert (await posted(running, b"{}"))[0] == 400
        assert (await posted(running, good, ""))[0] == 401
        assert (await posted(running, b" " * (MAX_QUESTION_BYTES + 1)))[0] == 413
        status, answer = await posted(running, json.dumps(question(partition=9)).encode())
        assert status == 404
        assert "orders-9 is not led by this broker" in answer
        status, sentence = await got(running, "/search")
        assert status == 405
        assert "by POST" in sentence
        assert (await posted(running, good))[0] == 200

    with_records(tmp_path, story)


def test_who_waits_to_be_told_to_go_on_is_told(tmp_path: Path) -> None:
    async def story(running: RunningBroker) -> None:
        body = json.dumps(question()).encode()
        head = (
            f"POST /search HTTP/1.1\r\nHost: x\r\n{KNOWN}Expect: 100-continue\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        async with port_of(running) as client, asyncio.timeout(WAIT_SECONDS):
            client.writer.write(head.encode())
            assert (await client.reader.readline()).startswith(b"HTTP/1.1 100")
            client.writer.write(body)
            assert b'"verdict": "complete"' in await client.reader.read(-1)

    with_records(tmp_path, story)


def test_a_third_search_is_told_to_come_again(
    tmp_path: Path, worker: Callable[[str], None]
) -> None:
    async def story(running: RunningBroker) -> None:
        worker(SLOW_WORKER)
        body = json.dumps(question()).encode()
        head = f"POST /search HTTP/1.1\r\nHost: x\r\n{KNOWN}Content-Length: {len(body)}\r\n\r\n"
        async with AsyncExitStack() as stack:
            for _ in range(searches.MAX_SEARCHES):
                client = await stack.enter_async_context(port_of(running))
                client.writer.write(head.encode() + body)
                await client.reader.readuntil(b"progress")

            status, answer = await posted(running, body)

            assert status == 429
            assert "2 searches are running" in answer

    with_records(tmp_path, story)


def test_a_search_whose_asker_hangs_up_is_killed_and_its_place_is_free(
    tmp_path: Path, worker: Callable[[str], None]
) -> None:
    async def story(running: RunningBroker) -> None:
        worker(SLOW_WORKER)

        def ask() -> None:
            with Inspection(running.host, running.ready.inspection_port, SECRET) as inspection:
                lines = inspection.search(question())
                assert len(list(islice(lines, 3))) == 3
                lines.close()  # type: ignore[attr-defined]

        for _ in range(searches.MAX_SEARCHES + 1):
            await running.in_thread(ask)
            port = running.broker._inspection  # noqa: SLF001 - nobody else knows when it is over
            await until(lambda: port._searches._running == 0)  # noqa: B023, SLF001

    with_records(tmp_path, story)


def test_a_search_that_fails_says_so_at_its_end(
    tmp_path: Path, worker: Callable[[str], None]
) -> None:
    async def story(running: RunningBroker) -> None:
        worker(BROKEN_WORKER)
        with pytest.raises(InspectionFailed, match=r"ended early: .*the disk is on fire"):
            await searched(running)

    with_records(tmp_path, story)


def test_a_client_tells_why_it_was_refused(tmp_path: Path) -> None:
    async def story(running: RunningBroker) -> None:
        with pytest.raises(InspectionFailed, match=r"answered /search with 400: .*'topic'"):
            await searched(running, topic="")

    with_records(tmp_path, story)
