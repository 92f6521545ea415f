"""All partitions of this broker: created, led, configured and removed according to the image.

Knows no requests. Compares the image with the local partitions, topic by topic and in slices, so
that the event loop goes on in between. A folder is removed only on a record that names its topic's
id; one that belongs to another topic of the same name is set aside for an operator, and one that no
image mentions is left alone.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from brokers.clock import Clock
from brokers.cluster.broker_configs import defaults
from brokers.cluster.image import (
    NO_CONFIGS,
    Broker,
    ClusterImage,
    Configs,
    PartitionState,
    ResourceType,
    Topic,
)
from brokers.cluster.topic_configs import effective, values
from brokers.cluster.topic_names import INTERNAL_TOPICS
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.replication.closing import flush_last
from brokers.replication.creation import Creations
from brokers.replication.deadlines import Deadlines
from brokers.replication.flusher import Flusher
from brokers.replication.log_settings import TopicSettings, topic_settings
from brokers.replication.partition import Partition
from brokers.replication.recompressor import Recompressor
from brokers.replication.turns import Gate, Turns
from brokers.replication.waits import WaitRoom
from brokers.slices import Slices
from brokers.storage import names
from brokers.storage.errors import LogBusy, LogDirFailed, StorageCorrupt, StorageError
from brokers.storage.log import PartitionLog
from brokers.storage.log_dir import LogDir, NewPartition
from brokers.storage.partition_metadata import encode_id, write_partition_metadata

# Reports events for operators that no client requested: an event's name, and the error.
Trouble = Callable[[str, Exception], None]
Key = tuple[str, int]
# Makes the log of a new partition, or arranges it and returns None.
Make = Callable[[NewPartition], PartitionLog | None]

# Partitions that one round of `try_postponed` handles, so that it stays short.
MAX_TRIED: Final = 20
# Limits of produced batches inspected in steps, and of searches by time, that run at once. Each
# holds one unpacked batch, which a few KiB of a client may make 64 MiB, and twice that for a
# moment. The others wait in line, and keep their input.
MAX_INSPECTIONS: Final = 4
MAX_SEARCHES: Final = 4
_NO_IMAGE: Final = ClusterImage(cluster_id="")


class Replicas:
    """Belongs to the event loop. The log dir has loaded its folders before the first `apply`."""

    def __init__(
        self,
        log_dir: LogDir,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        flusher: Flusher,
        on_log_dir_failed: Callable[[LogDirFailed], None],
        on_trouble: Trouble | None = None,
        room: WaitRoom | None = None,
        static_configs: Configs = NO_CONFIGS,
    ) -> None:
        self.log_dir = log_dir
        self.flusher = flusher
        self.room = room or WaitRoom()
        self.deadlines = Deadlines(loop, clock)
        # Work for requests that takes too long for one turn of the loop.
        self.turns = Turns(loop, clock, self.report, event="request.turn_failed")
        self.inspections = Gate(MAX_INSPECTIONS)
        self.searches = Gate(MAX_SEARCHES)
        self.recompressor = Recompressor(loop, clock)
        # Partitions in use that must be removed, or that could not be made: to be retried.
        self.postponed: dict[Key, None] = {}
        self._loop = loop
        self._clock = clock
        self._static_configs = static_configs  # this broker's settings at its start
        self._on_log_dir_failed = on_log_dir_failed
        self._on_trouble = on_trouble
        self._image = _NO_IMAGE
        self._broker_id = -1
        self._led: dict[Key, Partition] = {}
        self._led_by_id: dict[tuple[bytes, int], Partition] = {}
        # For the hottest path, once per request: the partition if it is led here.
        self.led = self._led.get
        self.led_by_id = self._led_by_id.get
        # No longer led; their logs may still be flushing, so the objects are reused.
        self._resting: dict[Key, Partition] = {}
        self._settings: dict[str, TopicSettings] = {}
        self._plain_settings: TopicSettings | None = None  # of topics without own configs
        self._is_applying = False

    # -- for requests ----------------------------------------------------------------------------

    def leader(self, topic: str, index: int) -> Partition:
        """Return the partition, if this broker leads it; else KafkaError for the client."""
        partition = self._led.get((topic, index))
        if partition is None:
            raise self._not_here(topic, index)
        return partition

    def leader_by_id(self, topic_id: bytes, index: int) -> Partition:
        """Do the same by the topic's id; UNKNOWN_TOPIC_ID if the cluster lacks it."""
        partition = self._led_by_id.get((topic_id, index))
        if partition is None:
            name = self._image.names.get(topic_id)
            if name is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {encode_id(topic_id)}"
                )
            raise self._not_here(name, index)
        return partition

    def leader_state(self, topic: str, index: int) -> tuple[PartitionState, Broker] | None:
        """Return the known leader of a partition, for clients that asked another broker."""
        found = self._image.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        state = found.partitions[index]
        broker = self._image.brokers.get(state.leader)
        return None if broker is None else (state, broker)

    def partitions(self) -> Iterable[Partition]:
        """The partitions that this broker leads."""
        return self._led.values()

    def __len__(self) -> int:
        return len(self._led)

    # -- the image -------------------------------------------------------------------------------

    async def apply(self, image: ClusterImage, broker_id: int) -> None:
        """Adapt the partitions of this broker to an image; one call at a time."""
        assert not self._is_applying, "an image is being applied"
        self._is_applying = True
        try:
            before, self._image, self._broker_id = self._image, image, broker_id
            slices = Slices(self._clock)
            for key in self._doomed():
                self._remove(key)
                await slices.breathe()
            for name in before.topics.keys() - image.topics.keys():
                self._resign(before.topics[name])
                await slices.breathe()
            are_defaults_kept = all(
                image.configs_of(ResourceType.BROKER, name)
                == before.configs_of(ResourceType.BROKER, name)
                for name in ("", str(broker_id))
            )
            if not are_defaults_kept:
                self._plain_settings = None
            creations = Creations(self.log_dir, flusher=self.flusher, loop=self._loop)
            for topic in image.topics.values():
                if self._must_apply(topic, before, are_defaults_kept=are_defaults_kept):
                    await self._apply_topic(topic, creations, slices)
                await slices.breathe()
            while not creations.are_done:
                creations.begin()
                await self._take_created(creations, slices)
        finally:
            self._is_applying = False

    def try_postponed(self) -> None:
        """Retry partitions that could not be made or removed before."""
        if self._is_applying:
            return
        for key in list(self.postponed)[:MAX_TRIED]:
            del self.postponed[key]
            if key in self.log_dir.logs and self._is_deleted(key):
                self._remove(key)
            topic = self._image.topics.get(key[0])
            if topic is not None and key[1] < len(topic.partitions):
                self._apply_partition(topic, key[1], self._make_at_once)

    def open_refused(self) -> bool:
        """Open one log that a full disk refused at the start; True if the next may be tried now.

        It is led with the next round of `try_postponed`.
        """
        refused = self.log_dir.refused
        if not refused:
            return False
        log = self.log_dir.load_again(refused[0])
        if log is None:
            failure = self.log_dir.handles.failure
            if failure is not None:
                self.report("log_dir.failed", failure)
            return False
        if log.damage is not None:
            found = log.damage
            self.report("log.damaged", StorageCorrupt(found.path, found.position, found.reason))
        self.postponed[refused[0]] = None
        return True

    def end_fetches(self) -> None:
        """Answer every waiting reader with the present data, as if its time were over."""
        waiting = {watcher: None for p in self._led.values() for watcher in p.watchers}
        waiting.update(self.room.unwatched)
        for watcher in waiting:
            watcher.expire()

    async def close(self, *, broker_epoch: int) -> bool:
        """Flush and close everything, after the last answer; True if it can start quickly."""
        for partition in self._led.values():
            if partition.high_watermark < partition.log.end_offset:
                partition.ask_flush()
        await self.flusher.stop()
        self.recompressor.stop()
        for partition in self._led.values():
            partition.resign()
        await flush_last(self.log_dir.logs.values(), self.flusher)
        try:
            self.log_dir.write_high_watermarks(self.high_watermarks())
        except (StorageError, KafkaError) as error:
            self.report("high_watermarks.not_saved", error)
        return self.log_dir.close(broker_epoch=broker_epoch)

    def high_watermarks(self) -> dict[Key, int]:
        """Return those of led partitions, and the saved ones of the others, for the checkpoint."""
        # Also of logs that are still being loaded, or could not be.
        offsets = dict(self.log_dir.high_watermarks)
        for key, partition in self._led.items():
            offsets[key] = partition.high_watermark
        return offsets

    def save_log_starts(self) -> None:
        """Make the current log starts durable."""
        self.log_dir.write_log_starts()

    def disk_bytes(self) -> tuple[int, int]:
        """Return size and free bytes of the log dir's file system; -1 if unknown."""
        try:
            room = self.log_dir.handles.files.room(self.log_dir.path)
        except OSError:
            return -1, -1
        return room.size_bytes, room.free_bytes

    def report(self, event: str, error: Exception) -> None:
        """Report an error that no client waits for."""
        if isinstance(error, LogDirFailed):
            self._on_log_dir_failed(error)
        if self._on_trouble is not None:
            self._on_trouble(event, error)

    def _must_apply(self, topic: Topic, before: ClusterImage, *, are_defaults_kept: bool) -> bool:
        """Tell whether a topic has changed; update its settings."""
        name = topic.name
        configs = self._image.configs_of(ResourceType.TOPIC, name)
        is_configured = (
            are_defaults_kept
            and name in self._settings
            and configs == before.configs_of(ResourceType.TOPIC, name)
        )
        if not is_configured:
            self._settings[name] = self._settings_of(name, configs)
        return not is_configured or before.topics.get(name) is not topic

    async def _apply_topic(self, topic: Topic, creations: Creations, slices: Slices) -> None:
        for index in range(len(topic.partitions)):
            self._apply_partition(topic, index, creations.add)
            if creations.is_full:
                creations.begin()
                if creations.is_busy:
                    await self._take_created(creations, slices)
            await slices.breathe()

    async def _take_created(self, creations: Creations, slices: Slices) -> None:
        """Open a batch of partitions whose folders were made; postpone those that failed."""
        batch, error = await creations.take()
        if error is not None:
            self.postponed.update(((new.topic, new.index), None) for new in batch)
            self.report("partition.not_made", error)
            return
        for new in batch:
            self._apply_partition(
                self._image.topics[new.topic], new.index, self.log_dir.open_created
            )
            await slices.breathe()

    def _make_at_once(self, new: NewPartition) -> PartitionLog:
        return self.log_dir.create(new.topic, new.index, new.topic_id)

    def _settings_of(self, topic: str, configs: Configs) -> TopicSettings:
        is_plain = not configs and topic not in INTERNAL_TOPICS
        if is_plain and self._plain_settings is not None:
            return self._plain_settings
        inherited = _defaults(self._image, self._broker_id, self._static_configs)
        settings = topic_settings(topic, values(effective(configs, inherited)))
        if is_plain:
            self._plain_settings = settings
        return settings

    def _apply_partition(self, topic: Topic, index: int, make: Make) -> None:
        key, state = (topic.name, index), topic.partitions[index]
        partition = self._led.get(key)
        if partition is not None and partition.topic_id != topic.id:
            self._step_down(key)
            partition = None
        if self._broker_id not in state.replicas or state.leader != self._broker_id:
            if partition is not None:
                self._step_down(key)
            return
        if partition is None:
            partition = self._take(topic, index, make)
            if partition is None:
                return
        partition.reconfigure(self._settings[topic.name])
        partition.lead(state.leader_epoch)

    def _take(self, topic: Topic, index: int, make: Make) -> Partition | None:
        """Return a partition on its log, which is made if it is new; None if that must wait."""
        key = (topic.name, index)
        if key in self.log_dir.failed:
            return None  # It was reported when it was loaded; an operator has to act.
        try:
            log = self._log(topic, index) or make(
                NewPartition(topic=topic.name, index=index, topic_id=topic.id)
            )
        except LogBusy:
            self.postponed[key] = None
            return None
        except (StorageError, KafkaError, OSError) as error:
            self.postponed[key] = None
            self.report("partition.not_made", error)
            return None
        if log is None:
            return None
        partition = self._resting.pop(key, None)
        if partition is None or partition.log is not log:
            log.reconfigure(self._settings[topic.name].log)
            partition = Partition(
                topic=topic.name,
                topic_id=topic.id,
                index=index,
                log=log,
                settings=self._settings[topic.name],
                flusher=self.flusher,
                room=self.room,
                on_log_dir_failed=self._on_log_dir_failed,
            )
        self._led[key] = self._led_by_id[topic.id, index] = partition
        return partition

    def _log(self, topic: Topic, index: int) -> PartitionLog | None:
        """Return the log of a partition if it exists; set one of a former topic aside."""
        key, log_dir = (topic.name, index), self.log_dir
        log = log_dir.logs.get(key)
        noted = log_dir.topic_ids.get(key)
        if log is not None and noted is None:
            # A folder that was copied here, or whose metadata was damaged.
            write_partition_metadata(log_dir.handles.files, log.folder, topic.id)
            log_dir.topic_ids[key] = topic.id
        elif log is not None and noted != topic.id:
            is_deleted = self._is_deleted(key)
            marker = names.DELETE_FOLDER if is_deleted else names.STRAY_FOLDER
            log_dir.remove(*key, marker=marker)
            self._resting.pop(key, None)
            log = None
        return log

    def _doomed(self) -> list[Key]:
        """Return the partitions here whose topics were deleted."""
        deleted = self._image.deleted
        return [key for key, topic_id in self.log_dir.topic_ids.items() if topic_id in deleted]

    def _is_deleted(self, key: Key) -> bool:
        return self.log_dir.topic_ids.get(key) in self._image.deleted

    def _remove(self, key: Key) -> None:
        partition = self._led.get(key)
        if partition is not None and partition.topic_id in self._image.deleted:
            self._step_down(key)
        try:
            self.log_dir.remove(*key)
        except LogBusy:
            self.postponed[key] = None
        except (StorageError, KafkaError) as error:
            self.postponed[key] = None
            self.report("partition.not_removed", error)
        else:
            self._resting.pop(key, None)

    def _resign(self, topic: Topic) -> None:
        """Resign from a topic that left the image; its folders stay until a record deletes them."""
        self._settings.pop(topic.name, None)
        for index in range(len(topic.partitions)):
            if (topic.name, index) in self._led:
                self._step_down((topic.name, index))

    def _step_down(self, key: Key) -> None:
        partition = self._led.pop(key)
        del self._led_by_id[partition.topic_id, partition.index]
        self._resting[key] = partition
        partition.resign()

    def _not_here(self, topic: str, index: int) -> KafkaError:
        found = self._image.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}"
            )
        is_mine = found.partitions[index].leader == self._broker_id
        if is_mine and ((topic, index) in self.log_dir.failed or (topic, index) in self.postponed):
            return KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"the log of {topic}-{index} could not be opened, see the broker's log",
            )
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {topic}-{index}"
        )


def _defaults(image: ClusterImage, broker_id: int, static: Configs) -> Configs:
    """Return the defaults of topics."""
    return defaults(
        static,
        image.configs_of(ResourceType.BROKER, ""),
        image.configs_of(ResourceType.BROKER, str(broker_id)),
    )
