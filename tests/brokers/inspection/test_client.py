"""The client of the inspection port against a real broker's."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from brokers.inspection.client import Inspection, InspectionFailed
from tests.fakes.broker import SECRET, RunningBroker, running_broker


def with_broker(tmp_path: Path, story: Callable[[RunningBroker], None]) -> None:
    async def whole() -> None:
        async with running_broker(tmp_path, topics={"orders": 2}) as running:
            await running.in_thread(lambda: story(running))

    asyncio.run(whole())


def test_a_broker_is_asked_for_all_it_tells(tmp_path: Path) -> None:
    def story(running: RunningBroker) -> None:
        with Inspection(running.host, running.ready.inspection_port, SECRET) as inspection:
            assert inspection.is_serving()
            assert "samsa_partitions 2" in inspection.metrics()
            assert [row[:2] for row in inspection.feed()["rows"]] == [["orders", 0], ["orders", 1]]
            assert inspection.feed()["kind"] == "steps"

    with_broker(tmp_path, story)


def test_more_places_than_one_request_may_name_are_asked_in_several(tmp_path: Path) -> None:
    def story(running: RunningBroker) -> None:
        with Inspection(running.host, running.ready.inspection_port, SECRET) as inspection:
            times = inspection.times([*(("orders", 0, at) for at in range(600)), ("gone", 0, 0)])

            assert times == [None] * 600 + ["gone-0 is not led here"]

    with_broker(tmp_path, story)


def test_a_wrong_secret_is_said_with_the_address(tmp_path: Path) -> None:
    def story(running: RunningBroker) -> None:
        port = running.ready.inspection_port
        with (
            Inspection(running.host, port, "wrong") as inspection,
            pytest.raises(InspectionFailed, match=rf"{port} answered /metrics with 401: .*secret"),
        ):
            inspection.metrics()

    with_broker(tmp_path, story)


def test_a_client_that_is_given_a_function_shows_the_secret_of_that_moment(tmp_path: Path) -> None:
    secrets = iter(["wrong", SECRET])

    def story(running: RunningBroker) -> None:
        port = running.ready.inspection_port
        with Inspection(running.host, port, lambda: next(secrets)) as inspection:
            with pytest.raises(InspectionFailed, match="401"):
                inspection.metrics()

            assert "samsa_partitions" in inspection.metrics()

    with_broker(tmp_path, story)


def test_a_broker_that_is_not_there_is_named() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (
        Inspection("127.0.0.1", port, "s") as inspection,
        pytest.raises(InspectionFailed, match=f"127.0.0.1:{port} did not answer /health"),
    ):
        inspection.is_serving()


def test_dropped_connection_is_opened_again(tmp_path: Path) -> None:
    def story(running: RunningBroker) -> None:
        port = running.ready.inspection_port
        with Inspection(running.host, port, SECRET) as inspection:
            assert inspection.is_serving()
            inspection._connection.cut()  # noqa: SLF001 - as the end of an idle one

            assert inspection.is_serving()

    with_broker(tmp_path, story)
