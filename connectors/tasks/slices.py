"""Runs the slice that a message asks for: takes the lease, runs it, and releases the lease."""

import logging
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from django.db import DatabaseError, connections

from connectors.database import CONNECT
from connectors.runtime import slice as runtime_slice
from connectors.runtime.figures import Figures
from connectors.runtime.ports import Ending, Ports, Runnable, SliceEnd, TaskSpec, Wire
from connectors.runtime.traces import trace
from connectors.sdk.connector import Connector, JobConnector, SinkConnector, SourceConnector
from connectors.sdk.errors import ConfigError
from connectors.tasks import configs, leases, vouching
from connectors.tasks.kept import Shelf
from connectors.tasks.leases import Taken, Told
from connectors.tasks.pulse import Pulse
from connectors.tasks.source_offsets import StoredOffsets
from connectors.tasks.task_log import TaskLog

log: Final = logging.getLogger(__name__)
# How often to look for kept resources of tasks that have moved.
SWEEP_S: Final = 10.0


class HostClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


class Runner:
    """Runs slices in this process, one at a time."""

    def __init__(self, worker: str, wire: Wire, *, is_draining: Callable[[], bool]) -> None:
        self._worker = worker
        self._wire = wire
        self._is_draining = is_draining
        self._shelf = Shelf()
        self._swept_at = time.monotonic()

    def run(self, task: int, ticket: datetime) -> datetime | None:
        """Run a slice; return the ticket of the next one if the task continues at once."""
        if self._is_draining():
            return None
        try:
            taken = leases.take(self._worker, task, ticket)
        except DatabaseError as error:
            # The message is lost; the planner notices once the database is back.
            log.warning("slice.not_taken task=%d reason=%r", task, str(error))
            connections[CONNECT].close()
            return None
        if taken is None:
            return None
        end, told = self._run(taken)
        if end.ending in {Ending.FAILED, Ending.RETRY, Ending.LOST, Ending.STOPPED}:
            # A kept object may have caused the failure; and a stopped task must release external
            # resources, such as a slot, which has one reader.
            self._shelf.close_of(task)
        try:
            again = leases.release(taken, end, told)
            self._sweep()
        except DatabaseError:
            # The lease expires, and the planner queues the task again.
            log.exception("slice.not_released task=%s-%d", taken.name, taken.number)
            connections[CONNECT].close()
            return None
        return again

    def close(self) -> None:
        self._shelf.close()

    def _run(self, taken: Taken) -> tuple[SliceEnd, Told]:
        kept = self._shelf.of(taken)
        said = TaskLog(taken.connector, name=taken.name, number=taken.number)
        figures = Figures()
        try:
            with Pulse(taken, figures, is_draining=self._is_draining) as lease:
                ports = Ports(
                    lease=lease,
                    offsets=StoredOffsets(taken),
                    log=said,
                    clock=HostClock(),
                    wire=self._wire,
                    figures=figures,
                    kept=kept.by_plugin,
                    memory=kept.by_runtime,
                    held=kept.held,
                    creation_refusal=partial(
                        vouching.creation_refusal, taken.cluster, taken.connector
                    ),
                )
                end = self._run_with(taken, ports)
            return end, lease.told()
        finally:
            said.close()

    def _run_with(self, taken: Taken, ports: Ports) -> SliceEnd:
        try:
            clear = configs.clear(
                plugin=taken.plugin,
                stored=taken.config,
                own=taken.own_config,
                cluster=taken.cluster,
                name=taken.name,
            )
            plugin = _with_tasks(clear.plugin)
        # A config leads to foreign code, which may fail this task but no other.
        except Exception as error:  # noqa: BLE001
            return SliceEnd(ending=Ending.FAILED, trace=trace(error, ()))
        spec = TaskSpec(
            connector=taken.name,
            plugin=plugin,
            number=taken.number,
            count=taken.count,
            epoch=taken.epoch,
            config=clear.config,
            parsed=clear.parsed,
            retries=taken.retries,
            idle_slices=taken.idle_slices,
            secrets=clear.secrets,
        )
        return runtime_slice.run(spec, ports)

    def _sweep(self) -> None:
        if time.monotonic() - self._swept_at > SWEEP_S:
            self._swept_at = time.monotonic()
            self._shelf.sweep(self._worker)


def _with_tasks(plugin: type[Connector]) -> Runnable:
    if issubclass(plugin, SourceConnector | SinkConnector | JobConnector):
        return plugin
    raise ConfigError(f"{plugin.name} is not a source, sink or job: it cannot run")
