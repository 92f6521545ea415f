"""Decides what happens to a record on which a step failed: retry, skip, or fail the task."""

from collections.abc import Callable, Collection
from typing import Final, TypeVar

from connectors.runtime import figures, record_parts, waits
from connectors.runtime.causes import OTHERS, cause_of
from connectors.runtime.dead_letters import letter
from connectors.runtime.figures import Figures
from connectors.runtime.masking import masked
from connectors.runtime.ports import Level, Outlet, Ports, TaskSpec
from connectors.runtime.steps import StepFailed
from connectors.runtime.task_settings import Errors
from connectors.runtime.traces import parts
from connectors.sdk.errors import ConnectorError, RetriableError
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import CLUSTER_DEFAULT, Delivered, NewTopic, Record

T = TypeVar("T")

# A step that waits longer would keep the worker from other tasks.
MAX_STEP_WAIT_S: Final = 5.0
# Limits the bytes of a record in a log line.
MAX_SHOWN_BYTES: Final = 200


class ToleranceExceeded(ConnectorError):
    """A record failed, and the connector tolerates no errors."""


class Tolerance:
    """Handles the failed records of one slice."""

    def __init__(self, spec: TaskSpec, ports: Ports, errors: Errors, counted: Figures) -> None:
        self._spec = spec
        self._ports = ports
        self._errors = errors
        self._figures = counted
        self._letters: Outlet | None = None
        self._refused: KafkaFailure | None = None

    def attempt(self, step: Callable[[], T]) -> T:
        """Run a step; retry it after a RetriableError for the configured time."""
        began = self._ports.clock.monotonic()
        attempts = 0
        while True:
            try:
                return step()
            except StepFailed as failed:
                if not isinstance(failed.cause, RetriableError):
                    raise
                limit = self._errors.retry_s
                wait = min(waits.retry(attempts, most_s=self._errors.max_delay_s), MAX_STEP_WAIT_S)
                passed = self._ports.clock.monotonic() - began + wait
                if limit is not None and passed > limit:
                    raise
                if passed > MAX_STEP_WAIT_S:
                    # Too long for a slice: the task is retried later.
                    raise failed.cause from None
                self._ports.clock.wait(wait)
                attempts += 1
                self._figures.add(figures.RETRIED)

    def failed(self, failure: StepFailed, raw: Record | None) -> None:
        """Skip a record, or end the task with ToleranceExceeded."""
        self._figures.add(figures.FAILED)
        if self._errors.is_logged:
            said = masked(self._line(failure, raw), self._spec.secrets)
            self._ports.log.write(Level.ERROR, said)
        if not self._errors.is_tolerant:
            text, about_record = parts(failure.cause)
            raise ToleranceExceeded(
                f"Tolerance exceeded in error handler: {failure.stage.value} failed for"
                f" {_where(raw)}: {text}",
                about_record=about_record,
            ) from failure.cause
        self._figures.add(figures.SKIPPED)
        self._figures.lose(
            cause_of(failure, self._spec.secrets, self._topics(raw)), otherwise=OTHERS
        )
        if raw is not None and self._errors.dead_letters:
            self._bury(failure, raw)

    def settle(self) -> None:
        """Wait until all dead letters are written; KafkaFailure if one is not.

        Only after that, offsets of later records may be committed.
        """
        if self._letters is not None:
            self._letters.flush()
        refused, self._refused = self._refused, None
        if refused is not None:
            raise refused

    def _bury(self, failure: StepFailed, raw: Record) -> None:
        topic = self._errors.dead_letters
        if self._letters is None:
            self._require(topic)
            self._letters = self._ports.wire.outlet({})
        record = letter(
            raw,
            failure,
            connector=self._spec.connector,
            task=self._spec.number,
            has_context=self._errors.has_context,
            secrets=self._spec.secrets,
        )
        self._letters.send(topic, record, self._buried)

    def _buried(self, told: Delivered | KafkaFailure) -> None:
        if isinstance(told, KafkaFailure):
            self._refused = self._refused or told
        else:
            self._figures.add(figures.DEAD)

    def _require(self, topic: str) -> None:
        # A refused attempt to create it would be in the cluster's audit, for each slice.
        if topic in self._ports.wire.topic_ids([topic]):
            return
        # Connect's default needs more brokers than small clusters have.
        replication = self._errors.dead_replication
        made = NewTopic(
            name=topic,
            partitions=1,
            replication_factor=replication if replication > 0 else CLUSTER_DEFAULT,
        )
        if self._ports.wire.create(made):
            self._ports.log.write(Level.INFO, f"created topic {topic} for dead letters")

    def _line(self, failure: StepFailed, raw: Record | None) -> str:
        text, about_record = parts(failure.cause)
        line = (
            f"Error encountered in task {self._spec.connector}-{self._spec.number}. Executing"
            f" stage '{failure.stage.value}' with class '{failure.class_name}',"
            f" where {_where(raw)}: {text}"
        )
        if raw is not None and self._errors.has_records_logged:
            about_record += f" key={_shown(raw.key)} value={_shown(raw.value)}"
        return line + record_parts.marked(about_record, self._topics(raw))

    def _topics(self, raw: Record | None) -> Collection[str]:
        """Return the topics whose readers may see what is said about a record."""
        return self._figures.topics() if raw is None else (raw.topic,)


def _where(raw: Record | None) -> str:
    if raw is None:
        return "a record of the source"
    return f"topic {raw.topic}, partition {raw.partition}, offset {raw.offset}"


def _shown(content: bytes | None) -> str:
    return "null" if content is None else repr(content[:MAX_SHOWN_BYTES])
