"""One broker of a home is started, stopped and restarted, and stays stopped when it was."""

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from brokers.supervisor import client, holds
from brokers.supervisor.errors import StartRefused
from brokers.supervisor.orders import identity_of
from tests.brokers.supervisor.houses import House, running, within

pytestmark = pytest.mark.slow


async def ordered(house: House, verb: str, broker: str = "broker-2") -> Mapping[str, Any]:
    def ask() -> Mapping[str, Any]:
        return client.ask(house.home, f"broker.{verb}", seconds=30, broker=broker, by="alice")

    return await asyncio.to_thread(ask)


def test_a_broker_that_is_stopped_leaves_the_others_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, brokers=2) as house:
            await house.audience.hears("all is healthy")
            other = (await house.component("broker-1"))["pid"]

            told = await ordered(house, "stop")

            assert told["state"] == "stopped", told
            found = await house.component("broker-2")
            assert (found["state"], found["pid"], found["held_by"]) == ("stopped", None, "alice")
            assert "stopped by alice" in found["reason"]
            assert "brokers start broker-2" in found["reason"]
            assert (await house.component("broker-1"))["pid"] == other
            assert (await ordered(house, "stop"))["sentence"].endswith("already, by alice")

    within(scenario)


def test_a_broker_that_was_stopped_is_started_again_with_its_port(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, brokers=2) as house:
            await house.audience.hears("all is healthy")
            before = (await house.status())["bootstrap"]
            await ordered(house, "stop")

            told = await ordered(house, "start")

            assert told["state"] == "healthy", told
            assert (await house.component("broker-2"))["held_by"] is None
            assert (await house.status())["bootstrap"] == before
            assert holds.read(tmp_path) == {}
            assert (await ordered(house, "start"))["sentence"].endswith("runs already")

    within(scenario)


def test_a_restart_makes_another_process_and_counts_no_failure(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"broker-2": "stubborn"}, brokers=2, stop_seconds=0.2) as home:
            await home.audience.hears("all is healthy")
            before = (await home.component("broker-2"))["pid"]

            told = await ordered(home, "restart")

            after = await home.component("broker-2")
            assert told["state"] == "healthy", told
            assert after["pid"] not in {None, before}
            assert after["restarts"] == 0

    within(scenario)


def test_a_broker_that_was_stopped_stays_so_when_the_home_starts_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, brokers=2) as house:
            await house.audience.hears("all is healthy")
            await ordered(house, "stop")
        async with running(tmp_path, brokers=2) as house:
            # The start is not kept waiting by it.
            await house.audience.hears("all is healthy")
            await house.audience.hears("broker-2", "stopped by alice")
            assert (await house.component("broker-2"))["state"] == "stopped"

            told = await ordered(house, "restart")
            assert told["error"].endswith("is stopped, by alice: start it instead")
            assert (await ordered(house, "start"))["state"] == "healthy"

    within(scenario)


def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"broker-2": "crash"}, brokers=2) as house:
            await house.audience.hears("broker-2", "exit code 3")
            await ordered(house, "stop")

            told = await ordered(house, "start")

            assert "ended with exit code 3: the disk is made of cheese" in told["error"]

    within(scenario)


def test_a_broker_whose_disk_fails_before_it_serves_waits_for_an_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"broker-1": "bad-disk"}) as house:
            await house.audience.hears("broker-1", "it is not started again by itself")

            found = await house.component("broker-1")
            assert (found["state"], found["restarts"], found["pid"]) == ("crash-loop", 1, None)
            assert found["reason"].startswith("ended because its disk failed; `./samsa brokers st")

            told = await ordered(house, "start", "broker-1")
            assert "its disk failed" in told["error"]
            assert (await house.component("broker-1"))["restarts"] == 2
            await ordered(house, "start", "broker-1")
            await ordered(house, "stop", "broker-1")
            assert (await house.component("broker-1"))["state"] == "stopped"

    within(scenario)


def test_what_is_not_a_broker_of_the_home_takes_no_orders(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as house:
            await house.audience.hears("all is healthy")

            for name in ("agent", "broker-9", "", "../broker-1"):
                told = await ordered(house, "stop", name)
                assert "its brokers are broker-1" in told["error"]
            assert (await ordered(house, "remove"))["error"] == "unknown command"

    within(scenario)


def test_the_log_of_a_broker_is_told_and_followed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"broker-1": "complain"}) as house:
            await house.audience.hears("all is healthy")

            first = await ordered(house, "log", "broker-1")
            assert first["lines"][-1].endswith("Z the agent is on holiday")
            await ordered(house, "restart", "broker-1")

            def follow() -> Mapping[str, Any]:
                cursor = first["cursor"]
                return client.ask(house.home, "broker.log", broker="broker-1", cursor=cursor)

            then = await asyncio.to_thread(follow)
            assert len(then["lines"]) == 2
            assert not then["has_gap"]

    within(scenario)


def test_a_file_of_stopped_brokers_that_makes_no_sense_refuses_the_start(tmp_path: Path) -> None:
    Path(tmp_path, "held.json").write_text(json.dumps({"broker-1": {"by": 3}}))

    async def scenario() -> None:
        with pytest.raises(StartRefused, match=r"held\.json .*remove it to start all"):
            async with running(tmp_path):
                pass

    within(scenario)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("version=1\ncluster.id=abc\nnode.id=12\n", 12),
        ("version=0\nbroker.id=3\n", 3),
        ("node.id=x\n", None),
        ("", None),
    ],
)
def test_a_log_dir_says_whose_it_is(tmp_path: Path, text: str, found: int | None) -> None:
    Path(tmp_path, "meta.properties").write_text(text)

    assert identity_of(tmp_path) == found


def test_a_broker_on_hold_that_ends_is_not_restarted_until_it_is_released(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, brokers=2) as house:
            await house.audience.hears("all is healthy")

            told = await ordered(house, "hold")

            assert told["sentence"].endswith("not restarted until it is released")
            found = await house.component("broker-2")
            assert (found["state"], found["on_hold_by"], found["held_by"]) == (
                "healthy",
                "alice",
                None,
            )
            os.kill(found["pid"], signal.SIGKILL)
            await house.audience.hears("broker-2", "is on hold, so it is not restarted")
            found = await house.component("broker-2")
            assert (found["state"], found["pid"]) == ("stopped", None)
            assert "killed by signal 9 (SIGKILL)" in found["reason"]
            assert "brokers release broker-2" in found["reason"]
            assert (await ordered(house, "release"))["state"] == "healthy"
            assert (await house.component("broker-2"))["on_hold_by"] is None
            assert holds.read(tmp_path) == {}

    within(scenario)


def test_a_hold_outlasts_the_home_and_lets_the_broker_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, brokers=2) as house:
            await house.audience.hears("all is healthy")
            await ordered(house, "hold")
        async with running(tmp_path, brokers=2) as house:
            await house.audience.hears("all is healthy")
            found = await house.component("broker-2")
            assert (found["state"], found["on_hold_by"]) == ("healthy", "alice")

            told = await ordered(house, "restart")

            assert told["state"] == "healthy"
            assert (await house.component("broker-2"))["pid"] != found["pid"]
            assert (await house.component("broker-2"))["on_hold_by"] == "alice"
            assert (await ordered(house, "release"))["sentence"].endswith("if it hangs or ends")

    within(scenario)


def test_a_hold_ends_the_restarts_of_a_broker_that_waits_for_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"broker-2": "crash"}, brokers=2) as house:
            await house.audience.hears("broker-2", "starting it again in 0.8 s")

            await ordered(house, "hold")

            await house.audience.hears("broker-2", "is on hold, so it is not restarted")
            found = await house.component("broker-2")
            assert (found["state"], found["restarts"]) == ("stopped", 3)
            assert "cheese" in (await ordered(house, "release"))["error"]

    within(scenario)


def test_a_broker_on_hold_that_is_still_starting_can_be_started(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, brokers=2) as house:
            await house.audience.hears("all is healthy")
            await ordered(house, "hold")
        async with running(tmp_path, brokers=2, ready_seconds=300) as house:
            assert (await ordered(house, "start"))["state"] == "healthy"

    within(scenario)


def test_a_broker_on_hold_that_ends_does_not_keep_a_detached_start_waiting(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, brokers=2) as house:
            await house.audience.hears("all is healthy")
            await ordered(house, "hold")
        async with running(tmp_path, {"broker-2": "crash"}, brokers=2, is_detached=True) as house:
            await house.audience.hears("broker-2", "is on hold, so it is not restarted")
            await house.audience.hears("all is healthy")

    within(scenario)
