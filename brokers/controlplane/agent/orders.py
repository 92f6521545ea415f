"""Takes the orders that pages write for brokers of this host, and passes them to the supervisor.

Also reports to the cluster which brokers users stopped, by any means, and how brokers ended.
A table of four verbs lists the executable orders; an order is taken once, and its result is written
in any case.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from brokers.clock import Clock
from brokers.cluster.store import MetadataRegressed
from brokers.controlplane import orders, services
from brokers.controlplane.logs import log
from brokers.controlplane.orders import Look, Order, Verb
from brokers.controlplane.store import OrmStore
from brokers.supervisor import ends, holds
from brokers.supervisor.errors import NotRunning
from brokers.supervisor.home import Home

# For a user who pressed a button, a second is immediate. A check is two indexed queries.
LOOK_EVERY_S: Final = 1.0
# Orders of one host that run at the same time; the others wait, and may expire.
MAX_UNDER_WAY: Final = 8
# Longer than the supervisor takes for the longest of them.
ANSWER_WITHIN_S: Final = 60.0
# Its longest answer: 48 KiB of a log, escaped.
MAX_ANSWER_BYTES: Final = 512 * 2**10
COMMANDS: Final[Mapping[Verb, str]] = {
    Verb.START: "broker.start",
    Verb.STOP: "broker.stop",
    Verb.RESTART: "broker.restart",
    Verb.LOG: "broker.log",
}

T = TypeVar("T")
Request = Mapping[str, str | int]
Answer = Mapping[str, Any]
Ask = Callable[[Request], Awaitable[Answer]]
Holds = Mapping[int, tuple[str, int]]
Ends = Mapping[int, tuple[str, int, int]]


def supervisor_of(folder: Path) -> Ask:
    """Return a function that calls the home's supervisor; NotRunning and OSError if it is away."""

    async def ask(request: Request) -> Answer:
        path = await asyncio.to_thread(Home(folder).control_socket)
        reader, writer = await asyncio.open_unix_connection(path, limit=MAX_ANSWER_BYTES)
        try:
            writer.write(f"{json.dumps(dict(request))}\n".encode())
            await writer.drain()
            line = await reader.readline()
            if not line:
                return {"error": "the supervisor hung up without an answer"}
            answer = json.loads(line)
            if not isinstance(answer, dict):
                return {
                    "error": f"the supervisor sent {type(answer).__name__}, which is not an answer"
                }
            return answer
        finally:
            writer.close()

    return ask


async def keep_orders(
    store: OrmStore, *, agent_id: str, home: Path, clock: Clock, ask: Ask | None = None
) -> None:
    """Check for orders until the agent stops."""
    desk = OrderDesk(store, agent_id=agent_id, clock=clock, ask=ask or supervisor_of(home))
    async with asyncio.TaskGroup() as tasks:
        is_begun = False
        while True:
            try:
                if not is_begun:
                    await store.enter(services.give_up_taken, agent_id=agent_id)
                    is_begun = True
                held = await asyncio.to_thread(read_holds, home)
                await desk.look(tasks, held, await asyncio.to_thread(read_ends, home))
            except (ConnectionError, MetadataRegressed):
                # The store reports it; orders wait, and expire.
                pass
            await asyncio.sleep(LOOK_EVERY_S)


class OrderDesk:
    """Checks for orders one after the other, and runs them. Belongs to one event loop."""

    def __init__(self, store: OrmStore, *, agent_id: str, clock: Clock, ask: Ask) -> None:
        self._store = store
        self._agent_id = agent_id
        self._clock = clock
        self._ask = ask
        self._under_way: set[int] = set()

    async def look(self, tasks: asyncio.TaskGroup, held: Holds | None, ended: Ends) -> None:
        """Take waiting orders, and write the holds and ends that differ from the rows."""
        seen: Look = await self._store.ask(
            orders.look,
            cluster_id=self._store.cluster_id,
            agent_id=self._agent_id,
            now_ms=self._clock.now_ms(),
        )
        own = seen.held if held is None else self._own(held)
        if own != seen.held:
            await self._store.enter(services.write_holds, agent_id=self._agent_id, held=own)
        news = {key: end for key, end in self._own(ended).items() if seen.ended.get(key) != end}
        if news:
            await self._store.enter(services.write_ends, agent_id=self._agent_id, ended=news)
        room = MAX_UNDER_WAY - len(self._under_way)
        numbers = [order.number for order in seen.waiting[:room]]
        if numbers:
            taken: Sequence[Order] = await self._store.enter(
                services.take_orders, agent_id=self._agent_id, numbers=numbers
            )
            for order in taken:
                self._under_way.add(order.number)
                tasks.create_task(self._execute(order))

    def _own(self, said: Mapping[int, T]) -> dict[int, T]:
        """Return what is said of brokers of this host; others have no rows that it may write."""
        brokers = self._store.image.brokers
        return {
            broker_id: each
            for broker_id, each in said.items()
            if (broker := brokers.get(broker_id)) and broker.agent_id == self._agent_id
        }

    async def _execute(self, order: Order) -> None:
        """Execute an order and write its result; a failure does not affect other orders."""
        try:
            try:
                await self._end(order, await self._asked(order))
            except (ConnectionError, MetadataRegressed):
                raise
            except Exception as error:  # noqa: BLE001 - one order must not end the agent
                log.error("order.crashed", number=order.number, verb=order.verb, error=repr(error))
                # As ASCII, because an invalid character may be the cause of the error.
                reason = f"the agent failed: {error!a}; see its log, and the broker's state"
                await self._end(order, {"error": reason})
        except Exception as error:  # noqa: BLE001 - as above
            log.limited("order.end_not_written", number=order.number, error=repr(error))
        finally:
            self._under_way.discard(order.number)

    async def _end(self, order: Order, answer: Answer) -> None:
        is_log = order.verb is Verb.LOG and "error" not in answer
        await self._store.enter(
            services.end_order,
            number=order.number,
            is_done="error" not in answer,
            message=str(answer.get("error") or answer.get("sentence") or ""),
            answer=json.dumps(answer, ensure_ascii=False) if is_log else "",
        )
        log.info("order.ended", number=order.number, verb=order.verb, broker=order.broker_id)

    async def _asked(self, order: Order) -> Answer:
        request: dict[str, str | int] = {
            "command": COMMANDS[order.verb],
            "broker": str(order.broker_id),
            "by": order.actor.removeprefix("User:"),
            "cursor": order.cursor,
        }
        log.info(
            "order.taken",
            number=order.number,
            verb=order.verb,
            broker=order.broker_id,
            by=order.actor,
        )
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                return await self._ask(request)
        except TimeoutError:
            return {"error": f"the supervisor has not answered within {ANSWER_WITHIN_S:g} s"}
        except NotRunning:
            return {"error": "no supervisor runs in the home of this broker: start it there"}
        except (OSError, ValueError) as error:
            return {"error": f"the supervisor of the broker's home does not answer: {error}"}


def read_ends(home: Path) -> Ends:
    """Return how brokers of the home ended last, by their ids."""
    return {key: (end.how, end.at_ms, end.times) for key, end in ends.read(home).items()}


def read_holds(home: Path) -> Holds | None:
    """Return who stopped which broker, by its id; None if the file cannot be read."""
    try:
        found = holds.read(home)
    except (OSError, ValueError) as error:
        log.limited("holds.unreadable", error=str(error))
        return None
    return {
        hold.broker_id: (hold.by, hold.at_ms)
        for hold in found.values()
        if hold.broker_id >= 0 and hold.is_stopped
    }
