"""The agent takes orders for its brokers, hands them to a supervisor, and writes their end."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from brokers.clock import SystemClock
from brokers.cluster.origins import Origin
from brokers.supervisor import ends, holds
from brokers.supervisor.ends import BrokerEnd
from brokers.supervisor.errors import NotRunning
from brokers.supervisor.holds import Hold
from brokers.supervisor.home import Home
from tests.brokers.controlplane.host import AGENT_ID, SOON_S, Host, new_cluster, running_host

from brokers.controlplane import orders, services  # isort: skip
from brokers.controlplane.agent import orders as agent_orders  # isort: skip
from brokers.controlplane.agent.orders import Ask, Request, keep_orders, supervisor_of  # isort: skip
from brokers.controlplane.orders import Order, OrderState, Verb  # isort: skip
from tests.brokers.controlplane.host import serving_broker  # isort: skip

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

CLOCK = SystemClock()


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look as soon as the last look is over."""
    monkeypatch.setattr(agent_orders, "LOOK_EVERY_S", 0.01)


async def ordered(host: Host, verb: Verb) -> Order:
    """Ask for an order as a page does, and return it when it has ended."""
    cluster_id = host.store.cluster_id
    broker = host.broker()
    assert broker is not None
    number = 0

    def write() -> None:
        nonlocal number
        number = services.ask_order(
            cluster_id=cluster_id,
            broker_id=1,
            broker_epoch=broker.epoch,
            verb=verb,
            origin=Origin(actor="User:alice", session="digest"),
            now_ms=CLOCK.now_ms(),
        )

    await host.run_elsewhere(write)
    return await until(lambda: found(host, number), lambda order: not order.is_open)


async def found(host: Host, number: int) -> Order:
    def read(**_: object) -> Order:
        from brokers.controlplane import models  # noqa: PLC0415 - after the project is set up

        row = models.BrokerOrder.objects.get(pk=number)
        return orders.order_of(row, CLOCK.now_ms())

    return await host.store.ask(read)


async def until(read: Callable[[], Awaitable[Any]], is_true: Callable[[Any], bool]) -> Any:
    """Read until something is true; nobody tells when another process writes a row."""
    async with asyncio.timeout(SOON_S):
        while not is_true(value := await read()):  # noqa: ASYNC110
            await asyncio.sleep(0)
    return value


def with_agent(home: Path, ask: Ask, story: Callable[[Host], Awaitable[None]]) -> None:
    """Run a story beside a broker that serves, and an agent that takes orders."""

    def start_agent() -> None:
        services.start_agent(
            cluster_id=cluster_id, agent_id=AGENT_ID, host="a", boot_id="", now_ms=CLOCK.now_ms()
        )

    async def run() -> None:
        async with running_host(cluster_id) as host, serving_broker(host):
            await host.run_elsewhere(start_agent)
            keeping = asyncio.create_task(
                keep_orders(host.store, agent_id=AGENT_ID, home=home, clock=CLOCK, ask=ask)
            )
            try:
                await story(host)
            finally:
                keeping.cancel()
                await asyncio.wait([keeping])

    cluster_id = new_cluster()
    asyncio.run(run())


def test_an_order_reaches_the_supervisor_and_its_end_the_row(database: str, tmp_path: Path) -> None:
    asked: list[Request] = []

    async def ask(request: Request) -> Mapping[str, Any]:
        asked.append(request)
        if request["command"] == "broker.log":
            return {"lines": ["<b>one</b>"], "cursor": "7:3", "has_gap": False}
        if request["command"] == "broker.stop":
            raise NotRunning("nobody there")
        return {"sentence": "broker-1 serves"}

    async def story(host: Host) -> None:
        restarted = await ordered(host, Verb.RESTART)
        assert (restarted.state, restarted.message) == (OrderState.DONE, "broker-1 serves")
        assert asked[0] == {
            "command": "broker.restart",
            "broker": "1",
            "by": "alice",
            "cursor": "",
        }
        failed = await ordered(host, Verb.STOP)
        assert failed.state is OrderState.FAILED
        assert "no supervisor runs" in failed.message
        log = await ordered(host, Verb.LOG)
        told = await host.store.ask(
            orders.log_lines,
            cluster_id=host.store.cluster_id,
            broker_id=1,
            number=log.number,
            now_ms=CLOCK.now_ms(),
        )
        assert told is not None
        assert told[1] is not None
        assert told[1].lines == ("<b>one</b>",)

    with_agent(tmp_path, ask, story)


def test_an_order_that_nobody_foresaw_fails_and_the_agent_takes_the_next_one(
    database: str, tmp_path: Path
) -> None:
    async def ask(request: Request) -> Mapping[str, Any]:
        if request["command"] == "broker.stop":
            raise RuntimeError("a fault of the agent's")
        if request["command"] == "broker.log":
            return {"lines": ["half of a character: \udc80"]}
        return {"sentence": "broker-1 serves"}

    async def story(host: Host) -> None:
        failed = await ordered(host, Verb.STOP)
        assert failed.state is OrderState.FAILED
        assert 'RuntimeError("a fault of the agent\'s")' in failed.message
        assert "see its log" in failed.message
        unwritten = await ordered(host, Verb.LOG)
        assert unwritten.state is OrderState.FAILED
        assert (await ordered(host, Verb.RESTART)).state is OrderState.DONE

    with_agent(tmp_path, ask, story)


def test_who_stopped_a_broker_is_told_to_the_cluster(database: str, tmp_path: Path) -> None:
    async def ask(_request: Request) -> Mapping[str, Any]:
        return {}

    async def held_by(host: Host) -> str:
        found = await host.store.ask(orders.places, cluster_id=host.store.cluster_id)
        return found[1].held_by

    async def story(host: Host) -> None:
        hold = Hold(by="alice", at_ms=5, broker_id=1)
        stranger = Hold(by="alice", at_ms=5, broker_id=77)
        holds.write(tmp_path, {"broker-1": hold, "broker-2": stranger})
        await until(lambda: held_by(host), lambda by: by == "alice")
        holds.write(tmp_path, {})
        await until(lambda: held_by(host), lambda by: by == "")

    with_agent(tmp_path, ask, story)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b'{"sentence": "done"}\n', {"sentence": "done"}),
        (b"[1]\n", {"error": "the supervisor sent list, which is not an answer"}),
        (b"", {"error": "the supervisor hung up without an answer"}),
    ],
)
def test_a_supervisor_is_asked_over_its_socket(
    database: str, tmp_path: Path, answer: bytes, told: Mapping[str, Any]
) -> None:
    async def story() -> Mapping[str, Any]:
        home = Home(tmp_path)
        home.prepare()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            assert json.loads(await reader.readline()) == {"command": "broker.stop"}
            writer.write(answer)
            writer.close()

        async with await asyncio.start_unix_server(serve, home.control_socket()):
            return await supervisor_of(tmp_path)({"command": "broker.stop"})

    assert asyncio.run(story()) == told


def test_how_a_broker_ended_is_written_into_its_row(database: str, tmp_path: Path) -> None:
    async def story(host: Host) -> None:
        def read(**_: object) -> orders.Place:
            return orders.places(cluster_id=host.store.cluster_id)[1]

        (tmp_path / "run").mkdir(exist_ok=True)
        end = BrokerEnd(how="was killed by signal 9 (SIGKILL)", at_ms=1_700_000_000_000, times=1)
        # Of broker 7 there is no row: it never registered here.
        ends.write(tmp_path, {1: end, 7: end})

        place = await until(lambda: host.store.ask(read), lambda place: bool(place.ended_how))

        assert (place.ended_how, place.ended_at_ms, place.ended_times) == (
            end.how,
            end.at_ms,
            end.times,
        )
        # A file that is gone says nothing.
        ends.write(tmp_path, {})
        assert (await host.store.ask(read)).ended_how == end.how

    with_agent(tmp_path, away, story)


async def away(_request: Request) -> Mapping[str, Any]:
    raise NotRunning("nobody there")
