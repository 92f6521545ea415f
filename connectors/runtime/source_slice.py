"""One slice of a source: poll, convert, produce, and store the offsets of acknowledged records.

At least once: offsets are stored after the records, fenced by the task's epoch.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from connectors.runtime import figures, waits
from connectors.runtime.context import SourceTaskContext
from connectors.runtime.ports import Level, Ports, SliceEnd, TaskSpec, Verdict
from connectors.runtime.steps import Stage, StepFailed, Steps
from connectors.runtime.task_settings import below, errors_of
from connectors.runtime.tolerance import Tolerance
from connectors.runtime.topic_creation import TopicCreation
from connectors.runtime.turn import Turn, is_passing
from connectors.sdk.connector import SourceConnector
from connectors.sdk.records import Place, SourceRecord
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Delivered

# How often to store offsets while records arrive: each time is a transaction.
STORE_S: Final = 0.5
# The most to read again after a crash, in addition to one poll.
MAX_UNSTORED: Final = 20_000
PRODUCER: Final = "org.apache.kafka.clients.producer.KafkaProducer"


def run(spec: TaskSpec, ports: Ports, make_steps: Callable[[Mapping[str, str]], Steps]) -> SliceEnd:
    """Run a slice; its result reports any error."""
    turn = Turn(spec, ports)
    max_delay_s = 60.0
    try:
        max_delay_s = errors_of(spec.config).max_delay_s
        is_idle = _SourceSlice(turn, make_steps(spec.config)).run()
    # A task is foreign code: any exception ends the slice and nothing else.
    except Exception as error:  # noqa: BLE001
        return turn.failed(error, max_delay_s=max_delay_s)
    return turn.end(is_idle=is_idle)


class _SourceSlice:
    def __init__(self, turn: Turn, steps: Steps) -> None:
        spec, ports = turn.spec, turn.ports
        assert issubclass(spec.plugin, SourceConnector), "a source's task is a source"
        self._turn = turn
        self._spec = spec
        self._ports = ports
        self._steps = steps
        self._tolerance = Tolerance(spec, ports, errors_of(spec.config), turn.figures)
        self._creation = TopicCreation(spec.config, ports)
        self._context = SourceTaskContext(spec, ports, turn.is_over)
        self._task = spec.plugin().task()
        self._outlet = ports.wire.outlet(below(spec.config, "producer.override."))
        self._refused: list[KafkaFailure] = []
        # Acknowledged, but not stored.
        self._done: list[SourceRecord] = []
        self._stored_at = ports.clock.monotonic()

    def run(self) -> bool:
        """Return whether the slice was idle at its end."""
        self._task.start(self._context, self._spec.parsed)
        try:
            return self._work()
        finally:
            self._stop()

    def _work(self) -> bool:
        quiet, has_polled = 0, False
        while not self._turn.is_over(is_idle=quiet > 0, has_begun=has_polled):
            has_polled = True
            records = self._task.poll()
            self._context.reached()
            self._produce(records)
            self._done += records
            if not records or self._is_store_due():
                self._store()
            quiet = 0 if records else quiet + 1
            # If others wait, the slice ends instead.
            if quiet and not self._turn.is_over(is_idle=True):
                self._ports.clock.wait(min(waits.look(quiet - 1), self._turn.left_s()))
        if self._turn.verdict() is not Verdict.LOST:
            self._store()
        return quiet > 0

    # --- records -------------------------------------------------------------------------------

    def _produce(self, records: Sequence[SourceRecord]) -> None:
        """Send a batch and wait for its acknowledgement; skip refused records, or end."""
        if not records:
            return
        self._turn.figures.add(figures.READ, len(records))
        for record in records:
            self._send(record)
        self._outlet.flush()
        refused, self._refused = self._refused, []
        for failure in refused:
            if is_passing(failure):
                self._creation.forget()
                raise failure
            self._tolerance.failed(StepFailed(Stage.KAFKA_PRODUCE, PRODUCER, failure), None)

    def _send(self, record: SourceRecord) -> None:
        try:
            made = self._tolerance.attempt(lambda: self._steps.outgoing(record))
        except StepFailed as failed:
            self._tolerance.failed(failed, None)
            return
        if made is None:
            self._turn.figures.add(figures.FILTERED)
            return
        topic, new = made
        self._creation.require(topic)
        self._turn.figures.use(topic)
        try:
            self._outlet.send(topic, new, partial(self._sent))
        except KafkaFailure as failure:
            # The client refused it before it was sent, because of its content.
            self._refused.append(failure)

    def _sent(self, told: Delivered | KafkaFailure) -> None:
        if isinstance(told, KafkaFailure):
            self._refused.append(told)
        else:
            self._turn.figures.add(figures.WRITTEN)

    # --- offsets -------------------------------------------------------------------------------

    def _is_store_due(self) -> bool:
        passed = self._ports.clock.monotonic() - self._stored_at
        return passed >= STORE_S or len(self._done) >= MAX_UNSTORED

    def _store(self) -> None:
        """Store the last offset of each place, and notify the task."""
        self._stored_at = self._ports.clock.monotonic()
        latest: dict[str, tuple[Place, Place]] = {}
        for record in self._done:
            place = record.source_partition
            latest[json.dumps(dict(place), sort_keys=True)] = (place, record.source_offset)
        if (passed := self._task.reached()) is not None:
            latest[json.dumps(dict(passed[0]), sort_keys=True)] = passed
        if not latest:
            return
        self._turn.require_lease()
        self._ports.offsets.store(list(latest.values()))
        done, self._done = self._done, []
        if done:
            self._turn.figures.add(figures.COMMITTED)
            self._turn.worked()
        self._task.commit(done)

    def _stop(self) -> None:
        """Stop the task; log its errors, so that they do not hide the result of the slice."""
        try:
            self._task.stop()
        # Foreign code; its records are stored, or will be read again.
        except Exception as error:  # noqa: BLE001
            said = self._turn.told(error)
            self._ports.log.write(Level.ERROR, f"the task failed while it stopped: {said}")
