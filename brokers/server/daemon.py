"""Runs one broker as a process: `python -m brokers.server`.

The composition root: reads the configuration, creates the real clock, the real files and the link
to this host's agent, and passes them to a `Broker`. Does not import Django.
"""

import asyncio
import gc
import os
import signal
from typing import Any, Final

from brokers import beats
from brokers.clock import SystemClock
from brokers.cluster.static_configs import wrong
from brokers.config import NUMBERS, BrokerConfig, ConfigError, broker_config
from brokers.exit_codes import DISK_FAILED, FAILED, MISCONFIGURED, STOPPED
from brokers.server.agent_link import AgentLink
from brokers.server.broker import Broker, DiskFailing, Ready, StartFailed
from brokers.server.descriptors import raise_limit
from brokers.server.logs import Log
from brokers.server.served import HANDLERS, LANES
from brokers.storage.disk_failures import note_failure
from brokers.storage.errors import LogDirFailed
from brokers.storage.files import LocalFiles

# Almost no objects here form cycles, and a full collection over many connections and partitions
# takes tens of milliseconds: it must be rare, and so must the small ones.
GC_THRESHOLDS: Final = (10_000, 20, 50)


def main() -> int:
    """Run the broker and return the exit code of the process."""
    clock = SystemClock()
    journal = Log(clock, component="broker", pid=os.getpid())
    try:
        config = broker_config()
        check_defaults(config)
    except ConfigError as error:
        journal.error("broker.misconfigured", error=error)
        return MISCONFIGURED
    raise_limit()
    return asyncio.run(_live(config, clock, journal))


def check_defaults(config: BrokerConfig) -> None:
    """Refuse invalid broker configs before any of them is used."""
    for key, text in config.defaults.items():
        fault = wrong(key, text, NUMBERS)
        if fault is not None:
            raise ConfigError(f"SAMSA_DEFAULTS: {fault}")


async def _live(config: BrokerConfig, clock: SystemClock, journal: Log) -> int:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: _note_stray(journal, context))
    link = AgentLink(config.agent_socket, clock=clock, log=journal)
    try:
        broker = Broker(config, store=link, modules=HANDLERS, lanes=LANES, clock=clock, log=journal)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, broker.stop)
        telling = loop.create_task(_keep_told(config.ready_fd, broker.ready))
        try:
            await broker.run()
        finally:
            telling.cancel()
    except StartFailed as error:
        journal.error("broker.gave_up", error=error)
        return DISK_FAILED if isinstance(error, DiskFailing) else FAILED
    except LogDirFailed as error:
        journal.error("log_dir.failed", path=error.path, operation=error.operation, error=error)
        return _disk_failed(error, config, clock, journal)
    except Exception as error:  # noqa: BLE001 - whatever it was, the operator's log must have it
        journal.bug("broker.failed", error)
        return FAILED
    finally:
        await link.close()
    return STOPPED


def _disk_failed(
    error: LogDirFailed, config: BrokerConfig, clock: SystemClock, journal: Log
) -> int:
    """Mark the log dir, and return the exit code; a bad sector that was read marks nothing."""
    if error.operation == "read":
        return FAILED
    try:
        note_failure(LocalFiles(), config.log_dir, error, clock.now_ms())
    except OSError as refused:
        journal.error("log_dir.not_marked", path=config.log_dir, error=refused)
    return DISK_FAILED


async def _keep_told(pipe: int, ready: asyncio.Future[Ready]) -> None:
    """Tell the process that started this one where the broker serves, then that it still does."""
    told = await asyncio.shield(ready)
    said = {
        "id": told.id,
        "host": told.host,
        "port": told.port,
        "inspection_port": told.inspection_port,
    }
    beats.say_ready(pipe, said)
    _settle()
    await beats.keep_beating(pipe)


def _settle() -> None:
    """Freeze the objects that exist once the broker serves: they live as long as the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def _note_stray(journal: Log, context: dict[str, Any]) -> None:
    """Log an exception from a callback or from a task that is not awaited."""
    error = context.get("exception")
    if isinstance(error, Exception):
        journal.bug("loop.failed", error, message=context.get("message"))
    else:
        journal.limited("loop.failed", "no exception", message=context.get("message"))
