"""A home starts, mends itself, tells what it is doing, and stops leaving nothing behind."""

import json
import os
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench.ports import claim_port
from brokers.agent_status import REGRESSED, write
from brokers.release import RELEASE_FILE
from brokers.supervisor import daemon, leftovers, probe
from brokers.supervisor.components import Component, Doors, connect_table
from brokers.supervisor.errors import StartRefused
from brokers.supervisor.home import Home
from brokers.supervisor.options import Options
from brokers.supervisor.ports import MAX_STEPS
from tests.brokers.supervisor.fake_house import Fakes
from tests.brokers.supervisor.houses import options_for, running, within
from tests.builders.conditions import condition

pytestmark = pytest.mark.slow

EVERYWHERE = "0.0.0.0"  # noqa: S104


def test_a_home_becomes_healthy_and_tells_where_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, brokers=2, web_port=0) as house:
            await house.audience.hears("all is healthy")

            told = await house.status()

            assert [entry["state"] for entry in told["components"]] == ["healthy"] * 6
            assert [entry["name"] for entry in told["components"]] == [
                *("supervisor", "agent", "broker-1", "broker-2", "web", "collector")
            ]
            ports = [entry["port"] for entry in told["brokers"]]
            assert told["bootstrap"] == ",".join(f"127.0.0.1:{port}" for port in ports)
            assert [entry["id"] for entry in told["brokers"]] == [7, 7]

    within(scenario)


@pytest.mark.parametrize(
    ("agent", "has_file", "told"),
    [
        ("", True, "admin, with the password in {home}/secrets/admin-password"),
        ("joined", False, "admin, made on host-a when the cluster began"),
        ("", False, "changepassword admin` sets a new password"),
    ],
)
def test_the_login_names_no_file_that_is_not_there(
    tmp_path: Path, agent: str, told: str, *, has_file: bool
) -> None:
    if has_file:
        Path(tmp_path, "secrets").mkdir()
        Path(tmp_path, "secrets", "admin-password").touch()

    async def scenario() -> None:
        async with running(tmp_path, {"agent": agent}, web_port=0, stop_seconds=0.5) as house:
            await house.audience.hears("Login  ", told.format(home=tmp_path))

    within(scenario)


def test_what_connectors_need_runs_while_there_are_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fakes(options: Options, home: Home, _doors: Doors) -> list[Component]:
        found = connect_table(options, home, Doors(valkey=Path("/valkey")))
        return [Fakes({}).fake(row) for row in found]

    monkeypatch.setattr(daemon, "connect_table", fakes)
    monkeypatch.setattr(daemon, "CONNECT_INTERVAL", 0.01)

    async def scenario() -> None:
        async with running(tmp_path, web_port=0) as house:
            for times in (1, 2):
                house.home.connect_mark.touch()
                await house.audience.hears("connect-worker-1", "ready in", times=times)
                await house.audience.hears("connect-beat", "ready in", times=times)
                house.home.connect_mark.unlink()
                await house.audience.hears("connect-beat", "no connector needs it", times=times)
                assert len((await house.status())["components"]) == 5
                assert len(list(leftovers.marked(tmp_path))) == 4

    within(scenario)


def test_a_stop_leaves_no_process(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"broker-1": "offspring"}, web_port=0) as house:
            await house.audience.hears("all is healthy")
            # Each component, and the child of one.
            assert len(list(leftovers.marked(tmp_path))) == 5

        assert list(leftovers.marked(tmp_path)) == []

    within(scenario)


def test_a_stop_ends_what_left_the_group_of_its_component(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"broker-1": "runaway"}) as house:
            await house.audience.hears("all is healthy")
            # Agent and broker, and the grandchild of one.
            assert len(list(leftovers.marked(tmp_path))) == 3

        assert list(leftovers.marked(tmp_path)) == []

    within(scenario)


@pytest.mark.parametrize("name", ["agent", "broker-1", "web", "collector"])
def test_a_killed_component_comes_back_with_its_port(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        async with running(tmp_path, web_port=0) as house:
            await house.audience.hears("all is healthy")
            before = await house.status()
            killed = (await house.component(name))["pid"]

            os.kill(killed, signal.SIGKILL)
            await house.audience.hears(name, "SIGKILL")
            await house.audience.hears(name, "ready in", times=2)

            after = await house.component(name)
            assert after["state"] == "healthy"
            assert after["pid"] != killed
            assert after["restarts"] == 1
            assert (await house.status())["bootstrap"] == before["bootstrap"]
            assert (await house.status())["console"] == before["console"]

    within(scenario)


def test_what_a_killed_component_left_in_its_group_goes_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"broker-1": "offspring"}) as house:
            await house.audience.hears("all is healthy")
            first = set(leftovers.marked(tmp_path))

            os.kill((await house.component("broker-1"))["pid"], signal.SIGKILL)
            await house.audience.hears("broker-1", "ready in", times=2)

            # The agent alone is still the same process.
            assert len(first & set(leftovers.marked(tmp_path))) == 1

    within(scenario)


def test_a_crash_loop_is_a_state_with_its_last_words(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"broker-1": "crash"}) as house:
            await house.audience.hears("broker-1", "exit code 3", times=3)

            told = await house.component("broker-1")

            assert told["state"] == "crash-loop"
            assert "the disk is made of cheese" in told["last_lines"]
            heard = [line for line in house.audience.lines if "cheese" in line]
            assert heard == ["  broker-1  | the disk is made of cheese"]

    within(scenario)


def test_a_detached_start_that_cannot_succeed_stops_everything(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(StartRefused, match=r"broker-1\.log has more: the disk.*cheese$"):
            async with running(tmp_path, {"broker-1": "crash"}, is_detached=True) as house:
                await house.audience.hears("exit code 3", times=3)
        assert list(leftovers.marked(tmp_path)) == []

    within(scenario)


def test_a_detached_start_with_a_disk_that_fails_stops_everything(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(StartRefused, match=r"stopped again: broker-1 .*its disk failed"):
            async with running(tmp_path, {"broker-1": "bad-disk"}, is_detached=True) as house:
                await house.audience.hears("not started again by itself")
        assert list(leftovers.marked(tmp_path)) == []

    within(scenario)


def test_a_home_of_a_newer_release_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    newer = {"release": "9.9", "migrations": ["controlplane.9999_future"]}
    (tmp_path / RELEASE_FILE).write_text(json.dumps(newer))

    async def scenario() -> None:
        with pytest.raises(StartRefused, match=r"written by 9\.9, .* controlplane\.9999_future"):
            async with running(tmp_path):
                pass

    within(scenario)
    assert [file.name for file in tmp_path.iterdir()] == [RELEASE_FILE]


def test_a_console_that_cannot_start_leaves_the_brokers_running(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(
            tmp_path, {"web": "crash"}, web_port=0, is_detached=True, stop_seconds=0.5
        ) as house:
            await house.audience.hears("web cannot start (ended with exit code 3)", "web.log")

            assert (await house.component("web"))["state"] != "healthy"
            assert (await house.component("broker-1"))["state"] == "healthy"
            assert (await house.component("agent"))["state"] == "healthy"
            # Nobody is sent to a console that is not there.
            assert not any(line.startswith("Console") for line in house.audience.lines)
            assert any(line.startswith("Kafka") for line in house.audience.lines)

    within(scenario)


def test_a_component_that_ignores_the_stop_is_killed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"broker-1": "stubborn"}, stop_seconds=0.3) as house:
            await house.audience.hears("all is healthy")

        assert list(leftovers.marked(tmp_path)) == []
        assert any("did not stop within" in line for line in house.audience.lines)

    within(scenario)


def test_a_late_broker_is_left_alone_and_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"broker-1": "silent+complain"}, ready_seconds=0.5) as house:
            await house.audience.hears("broker-1", "not ready after 0.5 s")
            await house.audience.hears("broker-1 ", "the agent is on holiday")

            told = await house.component("broker-1")

            assert (told["state"], told["restarts"]) == ("starting", 0)
            assert "not ready" in told["reason"]
            assert told["last_lines"] == ["the agent is on holiday"]

    within(scenario)


def test_a_taken_port_is_named_and_nothing_is_started(tmp_path: Path) -> None:
    async def scenario(port: int) -> None:
        with pytest.raises(StartRefused, match=f"port {port}, meant for broker-1, is taken"):
            async with running(tmp_path, brokers=2, port=port):
                pass
        assert not list((tmp_path / "logs").glob("broker*"))

    with socket.create_server(("127.0.0.1", 0)) as squatter:
        within(lambda: scenario(squatter.getsockname()[1]))


def test_a_taken_web_port_is_named(tmp_path: Path) -> None:
    async def scenario(port: int) -> None:
        with pytest.raises(StartRefused, match=f"port {port}, meant for the web server, is taken"):
            async with running(tmp_path, web_port=port):
                pass

    with socket.create_server(("127.0.0.1", 0)) as squatter:
        within(lambda: scenario(squatter.getsockname()[1]))


def test_a_door_that_nobody_gave_a_port_takes_the_next_free_one(tmp_path: Path) -> None:
    async def scenario(port: int) -> None:
        async with running(
            tmp_path, web_port=None, rest_port=port, can_rest_port_move=True, gateway_workers=2
        ) as house:
            await house.audience.hears("all is healthy")
            told = await house.status()
            settings = json.loads(house.home.settings_file.read_text(encoding="utf-8"))

        moved = settings["rest_port"]
        assert port < moved <= port + MAX_STEPS
        assert told["gateway"] == settings["gateway"] == f"http://127.0.0.1:{moved}"
        workers = [entry for entry in told["components"] if entry["name"].startswith("gateway")]
        assert [entry["name"] for entry in workers] == ["gateway-1", "gateway-2"]
        assert any(line.startswith("REST ") for line in house.audience.lines)

    with socket.create_server(("127.0.0.1", 0)) as squatter:
        within(lambda: scenario(squatter.getsockname()[1]))


def test_a_given_port_of_the_gateway_that_is_taken_is_named(tmp_path: Path) -> None:
    async def scenario(port: int) -> None:
        with pytest.raises(StartRefused, match=f"port {port}, meant for the gateway, is taken"):
            async with running(tmp_path, rest_port=port):
                pass

    with socket.create_server(("127.0.0.1", 0)) as squatter:
        within(lambda: scenario(squatter.getsockname()[1]))


def test_a_port_that_is_taken_while_a_broker_is_down_is_named(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"broker-1": "crash"}, port=claim_port()) as house:
            await house.audience.hears("broker-1", "exit code 3")
            port = (await house.status())["brokers"][0]["port"]
            with socket.create_server(("127.0.0.1", port)):
                await house.audience.hears(f"another program has taken port {port}")

    within(scenario)


def test_a_second_supervisor_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as house:
            await house.audience.hears("all is healthy")

            with pytest.raises(StartRefused, match=f"running already .process {os.getpid()}"):
                async with running(tmp_path):
                    pass

    within(scenario)


def test_two_homes_run_side_by_side(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "one") as one, running(tmp_path / "two") as two:
            await one.audience.hears("all is healthy")
            await two.audience.hears("all is healthy")

            first, second = await one.status(), await two.status()

            assert first["bootstrap"] != second["bootstrap"]

    within(scenario)


def test_sockets_of_a_deep_home_lie_in_a_short_private_folder(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)

    async def scenario() -> None:
        async with running(deep) as house:
            await house.audience.hears("all is healthy")
            folder = house.home.control_socket().parent

            assert folder.stat().st_mode & 0o777 == 0o700
            assert not folder.is_relative_to(tmp_path)
        assert not folder.exists()

    within(scenario)


def test_logs_of_more_brokers_than_are_started_are_pointed_out(tmp_path: Path) -> None:
    Path(tmp_path, "data", "broker-2").mkdir(parents=True)

    async def scenario() -> None:
        async with running(tmp_path) as house:
            await house.audience.hears("also has logs of broker-2")

    within(scenario)


def test_an_insecure_start_is_said_aloud(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(
            tmp_path, bind=EVERYWHERE, advertise="localhost", is_insecure=True
        ) as house:
            await house.audience.hears("--insecure", "no password is required")

    within(scenario)


def test_options_that_cannot_work_are_refused_before_the_home_is_made(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(StartRefused, match="--brokers is 0"):
            async with running(tmp_path / "home", brokers=0):
                pass

    within(scenario)

    assert options_for(tmp_path).brokers == 1
    assert not (tmp_path / "home").exists()


def test_a_mistake_in_the_file_of_settings_is_told_before_the_home_is_touched(
    tmp_path: Path,
) -> None:
    (tmp_path / "broker.properties").write_text("no.such.key=1\n", encoding="ascii")

    async def scenario() -> None:
        with pytest.raises(StartRefused, match=r"no\.such\.key"):
            async with running(tmp_path):
                pass

    within(scenario)

    assert [path.name for path in tmp_path.iterdir()] == ["broker.properties"]


def test_a_process_that_hangs_is_called_unresponsive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.2)

    async def scenario() -> None:
        async with running(tmp_path, web_port=0, stop_seconds=0.2) as house:
            await house.audience.hears("all is healthy")

            os.kill((await house.component("web"))["pid"], signal.SIGSTOP)

            assert (await house.component("web"))["state"] == "unresponsive"

    within(scenario)


def test_a_home_whose_agent_can_change_nothing_is_not_healthy(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as house:
            await house.audience.hears("all is healthy")
            agent = await house.component("agent")
            assert agent["state"] == "healthy"
            now_ms = int(1000 * time.monotonic())
            told = condition(pid=agent["pid"], monotonic_ms=now_ms)
            for said, reason in (
                (replace(told, condition=REGRESSED, message="set back"), "set back"),
                (replace(told, monotonic_ms=now_ms - 7_000), "has not responded for 7 s"),
            ):
                write(tmp_path, said)

                agent = await house.component("agent")

                assert agent["state"] == "degraded"
                assert reason in agent["reason"]

            write(tmp_path, replace(told, pid=1, condition=REGRESSED))
            assert (await house.component("agent"))["state"] == "healthy"

    within(scenario)
