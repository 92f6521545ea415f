"""Runs the agent: locks the home, migrates the tables, and serves brokers until it is stopped.

The composition root of the control plane: the only place that knows all of its parts.
"""

import asyncio
import math
import os
import signal
from typing import Final

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, connections

from brokers import beats
from brokers.clock import Clock, SystemClock
from brokers.cluster import levels
from brokers.cluster.levels import MAX_LISTED
from brokers.controlplane import selectors, services
from brokers.controlplane.agent import home, keys
from brokers.controlplane.agent.files import Files
from brokers.controlplane.agent.orders import keep_orders
from brokers.controlplane.agent.processes import watch_process
from brokers.controlplane.agent.server import AgentServer
from brokers.controlplane.agent.status import keep_proving, keep_status
from brokers.controlplane.agent.tables import ensure_tables
from brokers.controlplane.feed import make_feed
from brokers.controlplane.logs import forward_libraries, log
from brokers.controlplane.membership import Membership, former_members
from brokers.controlplane.store import FIRST_PAUSE_S, LONGEST_PAUSE_S, OrmStore
from brokers.protocol.errors import KafkaError

# The first cluster of a home; a console may show others later.
FIRST_CLUSTER: Final = "local"
# The umask for every file that the agent creates.
PRIVATE: Final = 0o077
# How often sessions are checked; a silent session ends at most this much late.
TICK_S: Final = 0.5
# A loop that was stopped for this long, by a suspended machine, could not receive pings.
HELD_UP_S: Final = 3.0


class StartRefused(Exception):
    """The cluster refuses this agent; the text says why and what to do."""


def run() -> None:
    """Run the agent of this home until SIGTERM or SIGINT."""
    forward_libraries()
    # Its files hold metadata and password hashes: closed to other users, whatever the umask of its
    # parent.
    os.umask(PRIVATE)
    with home.locked(settings.SAMSA_HOME):
        try:
            asyncio.run(_serve(home.agent_id(settings.SAMSA_HOME), SystemClock()))
        except BaseExceptionGroup as group:
            refusals, bugs = group.split((KafkaError, home.NewerRelease))
            if refusals is None or bugs is not None:
                raise
            raise StartRefused(str(_first(refusals))) from None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first: BaseException = group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first


async def _serve(agent_id: str, clock: Clock) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(_be_agent(agent_id, clock))
        await stopped.wait()
        serving.cancel()
    log.info("agent.stopped")


async def _be_agent(agent_id: str, clock: Clock) -> None:
    cluster_id, founded_on = await _ready_database(agent_id, clock)
    store = OrmStore(cluster_id=cluster_id, clock=clock, feed=make_feed())
    membership = Membership(store, agent_id=agent_id, clock=clock, watch=watch_process)
    server = AgentServer(membership, path=settings.SAMSA_AGENT_SOCKET)
    try:
        await store.start()
        # Wait without a limit: to end, and to be started again, would take longer.
        former = await store.ask(
            former_members, patience_s=math.inf, cluster_id=cluster_id, agent_id=agent_id
        )
        membership.expect_former(former)
        await server.start()
        log.info("agent.started", cluster=cluster_id, version=store.image.version)
        beats.say_ready(settings.SAMSA_READY_FD, {"ready": True, "founded_on": founded_on})
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(beats.keep_beating(settings.SAMSA_READY_FD))
            tasks.create_task(store.run())
            tasks.create_task(membership.run())
            tasks.create_task(_watch_sessions(membership, clock))
            tasks.create_task(keys.keep_keys(store, clock))
            files = Files(clock)
            tasks.create_task(files.run())
            tasks.create_task(keep_status(store, settings.SAMSA_HOME, clock, files))
            tasks.create_task(keep_proving(store, agent_id))
            tasks.create_task(
                keep_orders(store, agent_id=agent_id, home=settings.SAMSA_HOME, clock=clock)
            )
    finally:
        await server.close()
        membership.close()
        await store.close()


async def _ready_database(agent_id: str, clock: Clock) -> tuple[str, str]:
    """Wait until the database answers and has its tables, then return the result of `_begin`."""
    pause = FIRST_PAUSE_S
    while True:
        try:
            return await asyncio.to_thread(_begin, agent_id, clock.now_ms())
        except (OperationalError, InterfaceError, InternalError) as error:
            log.limited(
                "database.unreachable",
                error=str(error).strip(),
                advice="check that the database of DATABASE_URL runs and may be logged in to",
            )
            await asyncio.to_thread(_drop_pools)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)


def _drop_pools() -> None:
    """Drop pools of connections: they wait longer and longer between attempts of their own."""
    for alias in connections:
        # Only the backend of PostgreSQL has one.
        drop = getattr(connections[alias], "close_pool", None)
        if drop is not None:
            drop()
    connections.close_all()


def _begin(agent_id: str, now_ms: int) -> tuple[str, str]:
    """Return the cluster's id, and the host that founded it; empty if it was this home."""
    try:
        ensure_tables()
        cluster = services.ensure_cluster(name=FIRST_CLUSTER, now_ms=now_ms)
        services.start_agent(
            cluster_id=cluster.cluster_id,
            agent_id=agent_id,
            host=home.host_name(),
            boot_id=home.boot_id(),
            now_ms=now_ms,
        )
        keys.write_key_files(cluster.cluster_id, now_ms)
        founder_id, founder_host = selectors.founder(cluster_id=cluster.cluster_id)
        if held_back_by := selectors.held_back_by(cluster_id=cluster.cluster_id):
            log.info(
                "metadata.level_held_back", known=levels.KNOWN_LEVEL, by=held_back_by[:MAX_LISTED]
            )
    finally:
        # The connection of this thread; the store has its own.
        connections.close_all()
    return cluster.cluster_id, "" if founder_id == agent_id else founder_host


async def _watch_sessions(membership: Membership, clock: Clock) -> None:
    last = clock.monotonic()
    while True:
        await asyncio.sleep(TICK_S)
        now = clock.monotonic()
        if now - last > HELD_UP_S:
            membership.renew_all()
        last = now
        membership.end_expired()
