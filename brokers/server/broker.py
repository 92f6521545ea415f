"""Assembles, starts and stops a broker, in any process and over any metadata store.

Makes none of the decisions of its parts; its job is their order. The port is bound first, since the
broker registers with it, and opens last, as in Kafka: once this broker knows that the cluster has
admitted it. Before that it could only answer that no partition has a leader, which some clients
believe for minutes; a client whose connection is refused tries another broker, or again. At the
end the listener closes first and the logs last, after the last response; a log dir that failed is
not closed at all, so that the next start does not take it for clean.
"""

import asyncio
import math
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from brokers.clock import Clock
from brokers.cluster import broker_configs
from brokers.cluster.apply import apply
from brokers.cluster.image import ClusterImage, Position, ResourceType
from brokers.cluster.store import MetadataStore, Registered, Update
from brokers.config import (
    CONNECTIONS_MAX_IDLE_MS,
    FRAME_MAX_MS,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    REQUEST_MAX_BYTES,
    BrokerConfig,
)
from brokers.coordination.groups.facts import Tally
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.loading import Loaded
from brokers.coordination.runtime import Runtime
from brokers.disk_room import give_up_reserve
from brokers.key_files import KeyFile
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.replication.compactor import Compactor
from brokers.replication.flusher import Flusher
from brokers.replication.housekeeping import Housekeeping, Intervals
from brokers.replication.log_settings import before_metadata
from brokers.replication.replicas import Replicas
from brokers.server.context import Context
from brokers.server.coordinators import GroupCoordinator, group_runtime, group_settings
from brokers.server.descriptors import for_clients
from brokers.server.dispatch import Dispatch, HandlerModule
from brokers.server.express.lanes import Lane
from brokers.server.fetch_sessions import FetchSessions
from brokers.server.identity import ForeignLogDir, Identity, claim, read_identity, registration
from brokers.server.inspection_keys import InspectionKeys
from brokers.server.inspection_port import InspectionPort
from brokers.server.listener import BindFailed, Limits, Listener
from brokers.server.logs import Log
from brokers.server.loop_delay import LoopDelay
from brokers.server.metrics import Metrics
from brokers.server.producer_ids import ProducerIds
from brokers.server.workers import clean
from brokers.storage import names
from brokers.storage.disk_failures import MAX_FAILURES, recent_failures
from brokers.storage.errors import DiskNearlyFull, LogDirFailed, OutOfSpace, StorageCorrupt
from brokers.storage.files import Files, LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_dir import LogDir, LogDirInUse
from brokers.storage.names import DISK_FAILURES

# Time for requests in flight to finish when the broker stops; a produce waits for a flush, a fetch
# for its max_wait_ms, which clients leave at 500.
STOP_SECONDS: Final = 10.0
# How long to wait for the threads of a failed disk.
FAILED_FLUSH_SECONDS: Final = 1.0
# Between two attempts to register while the store is away, or an earlier incarnation is alive.
REGISTER_SECONDS: Final = 0.25
# An earlier incarnation that lives longer than this is not left over from a restart.
DUPLICATE_SECONDS: Final = 60.0
# Between two attempts to follow a store that refuses to send changes.
FOLLOW_SECONDS: Final = 5.0


class StartFailed(Exception):
    """The broker cannot start; the message says why and what to do."""


class DiskFailing(StartFailed):
    """The disk has failed too often to trust it once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The address of a broker that serves."""

    id: int
    host: str
    port: int
    inspection_port: int


class Broker:
    """One broker, alive while `running` is entered; bound to the event loop that creates it."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        store: MetadataStore,
        modules: Iterable[HandlerModule],
        lanes: Iterable[type[Lane]] = (),
        clock: Clock,
        log: Log,
        files: Files | None = None,
    ) -> None:
        self.config = config
        self.metrics = Metrics()
        self._clock = clock
        self._log = log
        self._store = store
        self._files = files or LocalFiles()
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self.ready: asyncio.Future[Ready] = self._loop.create_future()
        # Configuration errors are found before the log dir removes its clean-shutdown marker.
        limits = _limits(config)
        self._log_dir, self._identity = self._open_log_dir()
        self._flusher = Flusher(self._loop, clock=clock, on_log_dir_failed=self.fail)
        self.replicas = Replicas(
            self._log_dir,
            loop=self._loop,
            clock=clock,
            flusher=self._flusher,
            on_log_dir_failed=self.fail,
            on_trouble=self._report,
            static_configs=config.defaults,
        )
        self.context = Context(
            config=config,
            clock=clock,
            loop=self._loop,
            store=store,
            metrics=self.metrics,
            replicas=self.replicas,
            fetch_sessions=FetchSessions(clock=clock),
            producer_ids=self._issuer(),
        )
        self._groups = self._coordinated()
        self._dispatch = Dispatch(self.context, modules, log, lanes=lanes)
        self.listener = Listener(
            self._dispatch, limits=limits, clock=clock, metrics=self.metrics, log=log
        )
        self._flusher.around = self.listener.gather
        self.compactor = Compactor(
            self.replicas,
            clock=clock,
            run_worker=clean,
            counts=self.metrics,
            backoff_seconds=_backoff_seconds(config),
        )
        self._keys, metrics_keys = (
            KeyFile(Path(file), monotonic=clock.monotonic)
            for file in (config.secret_file, config.metrics_secret_file)
        )
        self._inspection = InspectionPort(
            self.context,
            keys=InspectionKeys(every_page=self._keys, metrics=metrics_keys),
            log=log,
        )
        self._loop_delay = LoopDelay(self.metrics.loop_delay, clock)
        self.port = 0
        self._logged_aside = 0  # folders
        self.is_clean = False  # whether the last end left a log dir that needs no recovery

    # -- from outside ----------------------------------------------------------------------------

    def stop(self) -> None:
        """End the broker cleanly. Further calls do nothing."""
        if not self._ended.done():
            self._ended.set_result(None)

    def fail(self, error: Exception) -> None:
        """End the broker at once, without marking the log dir as clean."""
        if not self._ended.done():
            self._ended.set_exception(error)
            # Mark the exception as retrieved: if the start itself failed, no task waits for it.
            self._ended.exception()

    async def run(self) -> None:
        """Run until the broker is stopped; raise the error that ended it otherwise."""
        async with self.running():
            await self._ended

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the broker inside the block; its port is bound on entry."""
        self._log_what_is_aside()
        self._flusher.start()
        chores = [
            self._loop.create_task(self._dispatch.run()),
            self._loop.create_task(
                Housekeeping(
                    self.replicas, clock=self._clock, intervals=intervals(self.config)
                ).run()
            ),
            self._loop.create_task(self._look_through_offsets()),
        ]
        # Separate from the others, since it ends first.
        cleaning = self._loop.create_task(self._compact())
        try:
            # Let the tasks take their first step, so that the dispatch is ready for requests.
            await asyncio.sleep(0)
            await self._take_ports()
            self._loop_delay.start()
            chores.append(self._loop.create_task(self._serve()))
            for task in (*chores, cleaning):
                task.add_done_callback(self._chore_ended)
            yield
        finally:
            await _cancelled(cleaning)
            await self._shut_down(chores)

    # -- the start -------------------------------------------------------------------------------

    def _open_log_dir(self) -> tuple[LogDir, Identity]:
        path = self.config.log_dir
        try:
            os.makedirs(path, mode=0o750, exist_ok=True)  # noqa: PTH103 - paths are strings here
            # First, since a log dir that is opened and not closed has to be recovered.
            identity = read_identity(self._files, path)
            self._refuse_failing_disk(path)
            log_dir = LogDir(
                path,
                files=self._files,
                handles=Handles(self._files),
                config_for=before_metadata,
            )
        except (LogDirInUse, StorageCorrupt) as error:
            raise StartFailed(str(error)) from error
        except (LogDirFailed, KafkaError, OSError) as error:
            kind = DiskFailing if isinstance(error, LogDirFailed) else StartFailed
            raise kind(
                f"log dir {path} cannot be used: {error}; check its owner, its mode and its disk"
            ) from error
        return log_dir, identity

    def _refuse_failing_disk(self, path: str) -> None:
        failures = recent_failures(self._files, path, self._clock.now_ms())
        if len(failures) >= MAX_FAILURES:
            raise DiskFailing(
                f"the disk of log dir {path} failed {len(failures)} times within a day, last: "
                f"{failures[-1].partition(' ')[2]}; check or replace it, then remove "
                f"{path}/{DISK_FAILURES} and start the broker again"
            )
        for failure in failures:
            self._log.warning("log_dir.failed_before", path=path, failure=failure)

    def _coordinated(self) -> Runtime[GroupShard]:
        """Create the runtime of groups, and make it available to handlers."""
        settings, tally = group_settings(self.config.defaults), Tally()
        groups = group_runtime(
            settings,
            tally=tally,
            replicas=self.replicas,
            clock=self._clock,
            loop=self._loop,
            on_trouble=self._report,
        )
        groups.on_loaded = self._coordinator_loaded
        groups.on_round = self.metrics.round_ended
        self.context.groups = GroupCoordinator(self.context, groups, settings, tally)
        return groups

    async def _take_ports(self) -> None:
        config = self.config
        try:
            self.port = self.listener.bind(config.bind, config.port)
            if config.secret_file:
                await self._inspection.open(config.bind, config.inspection_port)
        except (BindFailed, OSError) as error:
            raise StartFailed(str(error)) from error

    async def _serve(self) -> None:
        """Recover the logs, register, and follow the cluster until cancelled."""
        await self._load_logs()
        registered = await self._register()
        self._log_missing_keys()
        context = self.context
        context.broker_id = registered.broker_id
        context.broker_epoch = registered.broker_epoch
        context.cluster_id = registered.cluster_id
        position = Position()
        while True:
            try:
                async for update in self._store.follow(position):
                    await self._take(update, registered)
                    position = context.image.position
            except KafkaError as error:
                if error.code is ErrorCode.STALE_BROKER_EPOCH:
                    raise StartFailed(f"the cluster has let this broker go: {error}") from error
                self._log.limited("metadata.not_followed", error.code.name, error=error)
            except ConnectionError as error:
                # The known metadata stays valid, so the broker continues to serve.
                self._log.limited("metadata.not_followed", "lost", error=error)
            await asyncio.sleep(FOLLOW_SECONDS)

    async def _load_logs(self) -> None:
        """Open every partition's log, and log each one that is damaged or cannot be opened."""
        began = self._clock.monotonic()
        log_dir = self._log_dir
        for folder in log_dir.folders:
            log = log_dir.load(folder)
            if log is not None:
                self._log_damage(folder, log)
            # A log that was closed cleanly opens in a fraction of a ms; yield after each.
            await asyncio.sleep(0)
        for failed in log_dir.failed.values():
            self._log.error("log.not_opened", folder=failed.folder, error=failed.error)
            if isinstance(failed.error, OutOfSpace):
                self._make_way()
        if log_dir.handles.failure is not None:
            raise log_dir.handles.failure
        if log_dir.lost_producer_ids is not None:
            self._log.error("producer_ids.lost", error=log_dir.lost_producer_ids)
        try:
            log_dir.expire_producers(self._clock.now_ms())
        except OutOfSpace as error:
            # A full disk does not prevent the start; the chore tries again.
            self._report("producer_ids.not_saved", error)
        self._log.info(
            "logs.loaded",
            logs=len(log_dir.logs),
            was_clean=log_dir.clean_broker_epoch is not None,
            seconds=round(self._clock.monotonic() - began, 3),
        )

    def _issuer(self) -> ProducerIds:
        """Create the issuer of producer ids, which saves each block in the log dir."""
        return ProducerIds(self._log_dir.handles.producer_ids, save=self._save_producer_ids)

    def _save_producer_ids(self) -> None:
        """Save that this broker got a block; KafkaError while the disk refuses."""
        try:
            self._log_dir.save_producer_ids()
        except LogDirFailed as failure:
            self.fail(failure)
            message = "the disk of this broker's log dir has failed"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from failure

    def _make_way(self) -> None:
        """Give up the reserve on the disk, if it is full, for the next try of what was refused."""
        for folder in filter(None, (self.config.log_dir, self.config.reserve_folder)):
            give_up_reserve(folder)

    def _log_damage(self, folder: str, log: PartitionLog) -> None:
        if log.damage is not None:
            self._log.error(
                "log.damaged",
                folder=folder,
                path=log.damage.path,
                position=log.damage.position,
                offset=log.damage.offset,
                reason=log.damage.reason,
            )
        for path in log.set_aside:
            self._log.warning("log.part_set_aside", folder=folder, path=path)

    async def _look_through_offsets(self) -> None:
        """Have every shard of groups check for expired offsets, periodically."""
        seconds = self.context.groups.settings.offsets_check_interval_ms / 1000
        while True:
            await asyncio.sleep(seconds)
            self._groups.run_chores()

    async def _compact(self) -> None:
        if broker_configs.told(self.config.defaults, broker_configs.CLEANER_ENABLE):
            await self.compactor.run()

    def _coordinator_loaded(self, index: int, loaded: Loaded) -> None:
        self.metrics.coordinator_load_seconds.observe(loaded.seconds)
        if loaded.records:
            self._log.info(
                "coordinator.loaded",
                topic=self._groups.topic,
                partition=index,
                records=loaded.records,
                seconds=round(loaded.seconds, 3),
            )

    def _log_what_is_aside(self) -> None:
        """Log each folder that was set aside, once: earlier, or now for a topic of its name."""
        aside = self._log_dir.set_aside
        for folder in aside[self._logged_aside :]:
            parsed = names.parse_partition_folder(folder)
            assert parsed is not None, f"{folder} was set aside by its name"
            self._log.warning(
                "folder.set_aside",
                path=str(Path(self._log_dir.path, folder)),
                topic=parsed.topic,
                partition=parsed.partition,
                advice="its records are of another topic of this name: move it away, or keep it",
            )
        self._logged_aside = len(aside)

    def _log_missing_keys(self) -> None:
        """Log missing inspection keys; the agent writes keys before it serves.

        Without a key the port refuses every reader, which is no reason not to serve clients.
        """
        if self.config.secret_file and not self._keys.keys():
            self._log.error(
                "inspection.no_key",
                file=self.config.secret_file,
                advice="see whether the file is there and this user may read it",
            )

    async def _register(self) -> Registered:
        config = self.config
        wanted = registration(
            self._identity,
            host=config.advertised_host,
            port=self.port,
            inspection_port=self._inspection.port,
            rack=config.defaults.get("broker.rack"),
            clean_epoch=self._log_dir.clean_broker_epoch,
            wanted_id=config.wanted_id,
            highest_producer_id=self._log_dir.handles.producer_ids.highest,
        )
        deadline = math.inf
        while True:
            try:
                registered = await self._store.register(wanted)
                break
            except ConnectionError as error:
                self._log.limited("broker.not_registered", "store away", error=error)
            except KafkaError as error:
                now = self._clock.monotonic()
                # From the first refusal: the agent may have been away before.
                deadline = min(deadline, now + DUPLICATE_SECONDS)
                is_early = error.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
                if not is_early or now > deadline:
                    raise StartFailed(f"the cluster refused this broker: {error}") from error
                self._log.limited("broker.not_registered", "duplicate", error=error)
            await asyncio.sleep(REGISTER_SECONDS)
        claim(self._files, config.log_dir, self._identity, registered)
        self._log.info(
            "broker.registered",
            broker=registered.broker_id,
            epoch=registered.broker_epoch,
            cluster=registered.cluster_id,
        )
        return registered

    def _take_settings(self, image: ClusterImage) -> None:
        """Apply settings of this broker that may change while it runs."""
        settings = broker_configs.defaults(
            self.config.defaults,
            image.configs_of(ResourceType.BROKER, ""),
            image.configs_of(ResourceType.BROKER, str(self.context.broker_id)),
        )
        config = replace(self.config, defaults=settings)
        self.listener.limits = _limits(config)
        self.compactor.backoff_seconds = _backoff_seconds(config)

    async def _take(self, update: Update, registered: Registered) -> None:
        """Apply a change: requests see it, then partitions follow, then waiters are notified."""
        context = self.context
        image = update if isinstance(update, ClusterImage) else apply(context.image, update)
        context.image = image
        self._take_settings(image)
        await self.replicas.apply(image, context.broker_id)
        self._log_what_is_aside()
        self._groups.apply(image)
        self.metrics.partitions = len(self.replicas)
        if image.version >= registered.version:
            context.is_serving = True
        if not self.ready.done() and self._is_let_in(image):
            self._open_door()
        context.applied(image.version)
        self._store.applied(image.version)

    def _is_let_in(self, image: ClusterImage) -> bool:
        broker = image.brokers.get(self.context.broker_id)
        if broker is None or broker.epoch != self.context.broker_epoch:
            return False
        return not broker.is_fenced

    def _open_door(self) -> None:
        try:
            self.listener.listen()
        except BindFailed as error:
            raise StartFailed(str(error)) from error
        self._log.info("listener.opened", host=self.config.bind, port=self.port)
        ready = Ready(
            id=self.context.broker_id,
            host=self.config.advertised_host,
            port=self.port,
            inspection_port=self._inspection.port,
        )
        self._log.info("broker.ready", broker=ready.id, host=ready.host, port=ready.port)
        self.ready.set_result(ready)

    # -- the end ---------------------------------------------------------------------------------

    def _chore_ended(self, task: "asyncio.Task[None]") -> None:
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, ForeignLogDir):
            error = StartFailed(str(error))
        if isinstance(error, Exception):
            self.fail(error)

    async def _shut_down(self, chores: list["asyncio.Task[None]"]) -> None:
        # The caller may have cancelled the broker: that is a clean end and no failure.
        is_told = self._ended.done() and not self._ended.cancelled()
        error = self._ended.exception() if is_told else None
        # A refusal leaves the logs intact; after a failed disk or a bug their state is unknown.
        has_failed = error is not None and not isinstance(error, StartFailed)
        # Waiting fetches get what there is, so that clients find another broker sooner; the same
        # goes for members that wait for other members.
        self.replicas.end_fetches()
        await self._groups.close()
        cut = await self.listener.stop(0 if has_failed else STOP_SECONDS)
        if cut:
            self._log.warning("connections.cut", count=cut)
        self._loop_delay.stop()
        await self._inspection.close()
        await _cancelled(*chores)
        if has_failed:
            # Its threads may be in a sync that never returns.
            with suppress(TimeoutError):
                async with asyncio.timeout(FAILED_FLUSH_SECONDS):
                    await self._flusher.stop()
            return
        self.is_clean = await self.replicas.close(broker_epoch=self._epoch_of_end())
        self._log.info("broker.stopped", clean=self.is_clean)
        failure = self._log_dir.handles.failure
        if failure is not None:
            # It failed only now, perhaps in the last flush, so this end is not clean.
            raise failure

    def _epoch_of_end(self) -> int:
        """Return the epoch by which the next start proves that this end was clean."""
        before = self._log_dir.clean_broker_epoch
        is_registered = self.context.broker_epoch >= 0
        # A start that failed early has changed nothing.
        return self.context.broker_epoch if is_registered or before is None else before

    def _report(self, event: str, error: Exception) -> None:
        # The second is our own refusal, which keeps room and needs none.
        if isinstance(error, OutOfSpace) and not isinstance(error, DiskNearlyFull):
            self._make_way()
        self._log.limited(event, type(error).__name__, error=error)


async def _cancelled(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        # Failures were recorded when they happened.
        with suppress(asyncio.CancelledError, Exception):
            await task


def intervals(config: BrokerConfig) -> Intervals:
    """Return the times between two rounds of each chore."""
    check_ms = broker_configs.told(config.defaults, broker_configs.RETENTION_CHECK_MS)
    assert isinstance(check_ms, int), f"{check_ms!r} is not a number of milliseconds"
    return Intervals(retention=check_ms / 1000)


def _backoff_seconds(config: BrokerConfig) -> float:
    backoff_ms = broker_configs.told(config.defaults, broker_configs.CLEANER_BACKOFF_MS)
    assert isinstance(backoff_ms, int), f"{backoff_ms!r} is not a number of milliseconds"
    return backoff_ms / 1000


def _limits(config: BrokerConfig) -> Limits:
    return Limits(
        max_connections=min(config.number(MAX_CONNECTIONS), for_clients()),
        max_connections_per_ip=config.number(MAX_CONNECTIONS_PER_IP),
        idle_seconds=config.number(CONNECTIONS_MAX_IDLE_MS) / 1000,
        frame_seconds=config.number(FRAME_MAX_MS) / 1000,
        max_frame_bytes=config.number(REQUEST_MAX_BYTES),
    )
