"""Writes rows to a topic, batch by batch, each row at least once.

Only the group's offsets count: a batch that was not committed is written again.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from connectors.plugins.spark import batches, frames, job_note
from connectors.plugins.spark.batches import Offsets
from connectors.plugins.spark.pacing import Pacing
from connectors.plugins.spark.progress import Progress
from connectors.plugins.spark.schemas import quoted
from connectors.plugins.spark.shaping import Shaped
from connectors.plugins.spark.sql_keys import KEY, TOPIC
from connectors.plugins.spark.sql_rows import SqlRows
from connectors.sdk.connector import JobContext, JobTask, Parsed
from connectors.sdk.errors import ConnectorError, RetriableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_SHOWN_CHARS: Final = 300


class TopicTask(JobTask):
    def start(self, context: JobContext, parsed: Parsed) -> None:
        self._context = context
        self._rows = SqlRows(context, parsed)
        self._topic: str = parsed[TOPIC]
        self._key: str = parsed[KEY]
        self._pacing = Pacing(context.kept, parsed)
        self._progress = Progress(
            context,
            self._pacing,
            job_note.read(context),
            lambda state: job_note.keep(context, state),
        )
        self._progress.settle()
        committed, noted = context.committed(), replace(self._progress.state, batch=None)
        if noted.told and not committed:
            context.log(batches.FORGOTTEN.format(group=context.group))
        else:
            # Begin at the offsets of the group; keep only the noted topics and sizes.
            noted = replace(noted, next={}, told={})
        self._progress.state, _ = batches.adopt(noted, committed)

    def run(self) -> bool:
        if self._progress.is_idle():
            return False
        self._progress.settle()
        planned = self._progress.plan()
        if planned.next != self._progress.state.next:
            # Store the start of a partition first: its end may change until the next slice.
            self._tell(planned.next)
            self._progress.keep(replace(planned, batch=None))
        if planned.batch is None:
            return False
        watch = self._pacing.watch()
        with self._progress.attempt(planned.batch):
            shaped = self._rows.shape(planned.batch.spans, planned)
            watch.has_read()
            written = self._write(shaped)
            counts = shaped.finish()
        done = self._progress.done()
        self._pacing.done()
        self._context.count(read=counts.read, written=written, skipped=counts.skipped)
        # Before the commit: a failed commit is no reason to shrink the next batch.
        self._progress.keep(done)
        self._tell(done.next)
        self._context.note_batch(
            watch.ended(records=counts.read, rows=written, newest_ms=counts.newest_ms)
        )
        return True

    def stop(self) -> None:
        """Do nothing: only the session, which the process keeps, is open between batches."""

    def _tell(self, offsets: Offsets) -> None:
        self._context.require_lease()
        if not self._context.commit(offsets):
            raise RetriableError(
                "the group did not take how far the topics are read: the batch may be written again"
            )

    def _write(self, shaped: Shaped) -> int:
        """Write the rows of a batch; return their number."""
        from pyspark.sql import Observation  # noqa: PLC0415 - an extra
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        seen = Observation()
        rows = self._records(shaped.frame).observe(seen, F.count(F.lit(1)).alias("written"))
        self._context.require_lease()
        (
            rows.write.format(frames.FORMAT)
            .option("kafka.bootstrap.servers", self._context.bootstrap)
            .option("topic", self._topic)
            .mode("append")
            .save()
        )
        return int(seen.get["written"])

    def _records(self, frame: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        names = {name.lower(): name for name in frame.columns}
        shown = ", ".join(frame.columns)[:MAX_SHOWN_CHARS]
        if len(names) < len(frame.columns):
            raise ConnectorError(f"two columns have one name: {shown}; give one another by AS")
        if self._key and self._key.lower() not in names:
            raise ConnectorError(
                f"{KEY} names {self._key}, which is not a column: they are {shown}"
            )
        key = F.col(quoted(names[self._key.lower()])) if self._key else F.lit(None)
        value = F.struct(*(F.col(quoted(name)) for name in frame.columns))
        return frame.select(
            key.cast("string").alias("key"),
            F.to_json(value, {"ignoreNullFields": "false"}).alias("value"),
        )
