"""Handles the time limit of one slice, what may end it, and its errors.

Shared by sources, sinks and jobs; independent of what they do.
"""

from typing import Final

from connectors.runtime import figures, waits
from connectors.runtime.condition import FIRST_SUCCESS_S, Retrying
from connectors.runtime.ports import (
    SHARE_S,
    SLICE_S,
    Ending,
    LeaseLost,
    Level,
    Ports,
    SliceEnd,
    TaskSpec,
    Verdict,
)
from connectors.runtime.traces import parts, told, trace
from connectors.sdk.connector import JobConnector
from connectors.sdk.errors import ConnectorError, RetriableError
from gateway.kafka.errors import KafkaFailure, Kind

# Errors of a cluster that is down or moves a partition; the same call may succeed later.
PASSING: Final = frozenset(
    {
        "BROKER_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "NETWORK_EXCEPTION",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "NOT_CONTROLLER",
        "KAFKA_STORAGE_ERROR",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "REPLICA_NOT_AVAILABLE",
        "UNKNOWN_LEADER_EPOCH",
        "FENCED_LEADER_EPOCH",
    }
)
# An attempt that is so much later than planned was not late: the task was paused, or its home down.
MAX_LATE_S: Final = 60.0
# Of a message that is stored every few seconds.
MAX_REASON_CHARS: Final = 500


def is_passing(failed: KafkaFailure) -> bool:
    return failed.kind is Kind.TIMEOUT or failed.name in PASSING


class Turn:
    """The time of one slice, and its counts."""

    def __init__(self, spec: TaskSpec, ports: Ports) -> None:
        self.spec = spec
        self.ports = ports
        self.figures = ports.figures
        # Consecutive retriable failures.
        self.retries = spec.retries
        if self._was_interrupted():
            self.went_on()
        self._began = ports.clock.monotonic()
        self._verdict = Verdict.KEEP
        self._has_worked = False

    def verdict(self) -> Verdict:
        """Ask the lease what to do next; STOP and LOST are final."""
        if self._verdict not in {Verdict.STOP, Verdict.LOST}:
            self._verdict = self.ports.lease.renew()
        return self._verdict

    def require_lease(self) -> None:
        """Raise LeaseLost if nothing may be stored any more."""
        if self.verdict() is Verdict.LOST:
            raise LeaseLost("the task has another owner")

    def worked(self) -> None:
        """Note that something was made durable."""
        self._has_worked = self.figures.has_worked = True
        self.went_on()
        self.ports.lease.progress()

    def went_on(self) -> None:
        """Note that what failed before succeeds now."""
        self.retries = 0
        self.figures.retrying = None

    def retry(self, error: Exception, wait_s: float) -> None:
        """Note a failure after which the same is tried again."""
        self.retries += 1
        self.figures.add(figures.RETRIED)
        said, now_ms = self.told(error), self.ports.clock.now_ms()
        self.figures.retrying = Retrying(
            since_ms=self._failing_since_ms(now_ms),
            tries=self.retries,
            reason=said[:MAX_REASON_CHARS],
            next_ms=now_ms + int(1000 * wait_s),
        )
        self.ports.log.write(Level.WARN, f"{said}; trying again in {wait_s:.1f} s")

    def _was_interrupted(self) -> bool:
        """Return whether nothing was tried for so long that failures of before do not count."""
        before = self.figures.retrying
        late_ms = 0 if before is None else self.ports.clock.now_ms() - before.next_ms
        return late_ms > 1000 * MAX_LATE_S

    def told(self, error: Exception) -> str:
        """Return the message of an error of this slice, for logs and pages."""
        return told(error, self.spec.secrets, self.figures.topics())

    def _failing_since_ms(self, now_ms: int) -> int:
        before = self.figures.retrying
        return now_ms if before is None else before.since_ms

    def left_s(self) -> float:
        return max(0.0, self._began + SLICE_S - self.ports.clock.monotonic())

    def is_over(self, *, is_idle: bool = False, has_begun: bool = True) -> bool:
        """Return whether to end the slice: at once if it is idle and others wait.

        A slice looks for work once, however long its start took: else a task that is slow to start
        would never come to it.
        """
        verdict = self.verdict()
        if not has_begun:
            return verdict in {Verdict.STOP, Verdict.LOST}
        if verdict is Verdict.KEEP:
            return not self.left_s()
        has_had_share = self.left_s() <= SLICE_S - SHARE_S
        return verdict is not Verdict.YIELD or is_idle or has_had_share

    # --- the end -------------------------------------------------------------------------------

    def end(self, *, is_idle: bool) -> SliceEnd:
        """Return the result of a slice without a failure."""
        self.figures.retrying = None
        if self._verdict is Verdict.STOP:
            return self._end(Ending.STOPPED)
        if not is_idle or self._has_worked:
            # A task that has just worked may have more soon, so its wait is short.
            wait = waits.idle(0) if is_idle and self._verdict is Verdict.YIELD else 0.0
            return self._end(Ending.IDLE if is_idle else Ending.BUSY, wait_s=wait)
        # Do not wait if no other task waits for the worker.
        wait = waits.idle(self.spec.idle_slices) if self._verdict is Verdict.YIELD else 0.0
        return self._end(Ending.IDLE, wait_s=wait, idle_slices=self.spec.idle_slices + 1)

    def end_without_work(self) -> SliceEnd:
        """Return the result of a slice that had nothing to wait for: its topics do not exist."""
        if self.verdict() is Verdict.STOP:
            return self._end(Ending.STOPPED)
        slices = self.spec.idle_slices
        return self._end(Ending.IDLE, wait_s=waits.idle(slices), idle_slices=slices + 1)

    def failed(self, error: Exception, *, max_delay_s: float) -> SliceEnd:
        """Return the result of a slice that an error has ended."""
        if isinstance(error, LeaseLost):
            return self._end(Ending.LOST)
        if isinstance(error, RetriableError) or (
            isinstance(error, KafkaFailure) and is_passing(error)
        ):
            asked = error.wait_s if isinstance(error, RetriableError) else None
            wait = waits.retry(self.retries, most_s=max_delay_s) if asked is None else asked
            if (limit := self._first_limit(error)) is None:
                self.retry(error, wait)
                return self._end(Ending.RETRY, wait_s=wait)
            error = limit
        self.figures.retrying = None
        whole = trace(error, self.spec.secrets, self.figures.topics())
        self.ports.log.write(Level.ERROR, f"task failed: {whole.partition(chr(10))[0]}")
        return self._end(Ending.FAILED, trace=whole)

    def _first_limit(self, error: Exception) -> ConnectorError | None:
        """Return the final error of a task that has tried for too long, and has never worked.

        Jobs count their attempts themselves, and a cluster that is away is no matter of a config.
        """
        is_counted = isinstance(error, RetriableError) and not issubclass(
            self.spec.plugin, JobConnector
        )
        now_ms = self.ports.clock.now_ms()
        tried_ms = now_ms - self._failing_since_ms(now_ms)
        if self.figures.has_worked or not is_counted or tried_ms < 1000 * FIRST_SUCCESS_S:
            return None
        text, about_record = parts(error)
        return ConnectorError(
            f"{text}; gave up after {self.retries + 1} attempts in {tried_ms // 1000} s,"
            " since it has never worked with this config: correct the config, or restart the task"
            " once the other side answers",
            about_record=about_record,
        )

    def _end(
        self, ending: Ending, *, wait_s: float = 0.0, idle_slices: int = 0, trace: str = ""
    ) -> SliceEnd:
        return SliceEnd(
            ending=ending,
            wait_s=wait_s,
            retries=self.retries if ending is Ending.RETRY else 0,
            idle_slices=idle_slices,
            trace=trace,
            topics=self.figures.topics(),
            figures=self.figures.counts(),
        )
