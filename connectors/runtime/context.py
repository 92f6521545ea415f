"""Implements the contexts of the sdk, which tasks use during a slice, over the ports."""

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from connectors.runtime.masking import masked
from connectors.runtime.ports import Level, Ports, TaskSpec
from connectors.sdk.errors import ConnectorError
from connectors.sdk.records import Place, SinkRecord, TopicPartition


class TaskContext:
    def __init__(self, spec: TaskSpec, ports: Ports, is_over: Callable[[], bool]) -> None:
        self._spec = spec
        self._ports = ports
        self._is_over = is_over

    @property
    def connector(self) -> str:
        return self._spec.connector

    @property
    def task(self) -> int:
        return self._spec.number

    @property
    def epoch(self) -> int:
        return self._spec.epoch

    @property
    def retries(self) -> int:
        return self._spec.retries

    @property
    def kept(self) -> MutableMapping[str, Any]:
        return self._ports.kept

    @property
    def should_yield(self) -> bool:
        return self._is_over()

    def hold(self, size: int) -> int:
        return self._ports.held.hold(size)

    def log(self, text: str) -> None:
        self._ports.log.write(Level.INFO, masked(text, self._spec.secrets))

    def reached(self) -> None:
        self._ports.figures.has_worked = True

    def warn(self, text: str) -> None:
        self._ports.log.write(Level.WARN, masked(text, self._spec.secrets))


class SourceTaskContext(TaskContext):
    def offset(self, partition: Place) -> Place | None:
        return self._ports.offsets.read(partition)


class SinkTaskContext(TaskContext):
    def __init__(
        self,
        spec: TaskSpec,
        ports: Ports,
        is_over: Callable[[], bool],
        topic_ids: Mapping[str, str],
        *,
        refuse: Callable[[SinkRecord, ConnectorError], None],
        settle: Callable[[], None],
    ) -> None:
        super().__init__(spec, ports, is_over)
        self._topic_ids = topic_ids
        self._refuse = refuse
        self._settle = settle
        # The positions that the task has requested, until the next batch is taken.
        self.sought: dict[TopicPartition, int] = {}

    def refuse(self, record: SinkRecord, error: ConnectorError) -> None:
        self._refuse(record, error)

    def settle(self) -> None:
        self._settle()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.sought[partition] = offset

    def topic_id(self, topic: str) -> str:
        return self._topic_ids.get(topic, "")
