"""Records the state of a process's session: its Spark, its start, and its last error.

Other threads may read it at any time without waiting: while a session starts or works, its lock is
held for minutes, and Java may not answer at all. So the facts are one value, replaced as a whole.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_integration.jobs.targets import Target, shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

# Limits the text of an error: its first lines name the cause.
MAX_LINES: Final = 12
MAX_CHARS: Final = 1500
# The streaming queries to report; our sessions have fewer.
MAX_STREAMS: Final = 20
# Matches lines that explain the end of a JVM, among its other output.
LAST_WORDS: Final = re.compile(
    r"(?i)out ?of ?memory|insufficient memory|fatal|could not|cannot|error:"
)
OUTPUT_BYTES: Final = 65_536
# With the line before them they are as many as an error may have.
MAX_LAST_WORDS: Final = MAX_LINES - 2
HIDDEN: Final = "…"


class Stage(Enum):
    NONE = "none"
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """The engine of a session. None means unknown, as for a remote server."""

    version: str
    java_version: int | None = None
    java_origin: str = ""
    # The process id of the driver's JVM; 0 if it is not ours.
    process: int = 0
    heap_bytes: int | None = None
    cores: int | None = None
    # The address of Spark's pages; empty while they are off.
    ui_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A streaming query of the session, as reported by Spark."""

    name: str
    message: str
    batch: int | None = None
    rows: int | None = None
    rows_per_s: float | None = None
    took_ms: int | None = None
    watermark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    stage: Stage = Stage.NONE
    # Without a secret.
    target: str = ""
    # The beginning of the stage; 0 before the first one.
    since_ms: int = 0
    engine: EngineFacts | None = None
    streams: tuple[Stream, ...] = ()
    failure: str = ""
    failed_ms: int = 0


class Chronicle:
    """The facts about one process's session."""

    def __init__(self) -> None:
        self.facts = Facts()
        self._token = ""

    @contextmanager
    def starting(self, target: Target) -> Iterator[None]:
        """Record the start of a session, and its failure."""
        self._token = target.token
        self.facts = replace(
            self.facts,
            since_ms=now_ms(),
            stage=Stage.STARTING,
            target=shown(target.url),
            engine=None,
            streams=(),
        )
        try:
            yield
        # An interrupt ends a start too; it is raised again.
        except BaseException as error:
            self.failed(f"{type(error).__name__}: {error}")
            raise

    def running(self, engine: EngineFacts) -> None:
        self.facts = replace(self.facts, since_ms=now_ms(), stage=Stage.RUNNING, engine=engine)

    def seen(self, *, cores: int | None, streams: tuple[Stream, ...]) -> None:
        """Record facts that change while a session works."""
        engine = self.facts.engine
        if engine is not None:
            engine = replace(engine, cores=cores)
            self.facts = replace(self.facts, engine=engine, streams=streams)

    def failed(self, said: str) -> None:
        """Record that a session ended with an error."""
        self.facts = replace(
            self.facts,
            since_ms=now_ms(),
            stage=Stage.ENDED,
            failure=first_lines(said, self._token),
            failed_ms=now_ms(),
            streams=(),
        )

    def closed(self) -> None:
        """Record that a session was closed."""
        self.facts = replace(self.facts, since_ms=now_ms(), stage=Stage.ENDED, streams=())


def first_lines(said: str, token: str) -> str:
    """Return the first lines of an error, without secrets."""
    known = said.replace(token, HIDDEN) if token else said
    return "\n".join(shown(line) for line in known.strip().splitlines()[:MAX_LINES])[:MAX_CHARS]


def now_ms() -> int:
    return int(1000 * time.time())


def last_words(output: Path) -> str:
    """Return the lines in which a JVM explains its end; empty if there are none."""
    try:
        with output.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - OUTPUT_BYTES))
            text = file.read(OUTPUT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    found = [line for line in text.splitlines() if LAST_WORDS.search(line)]
    return "\n".join(found[-MAX_LAST_WORDS:])


def streams_of(spark: "SparkSession") -> tuple[Stream, ...]:
    """Return the running streaming queries of a session."""
    return tuple(stream_of(query) for query in list(spark.streams.active)[:MAX_STREAMS])


def stream_of(query: "StreamingQuery") -> Stream:
    last: Any = query.lastProgress or {}
    return Stream(
        name=str(query.name or query.id),
        message=str(query.status.get("message", ""))[:MAX_CHARS],
        batch=last.get("batchId"),
        rows=last.get("numInputRows"),
        rows_per_s=last.get("processedRowsPerSecond"),
        took_ms=(last.get("durationMs") or {}).get("triggerExecution"),
        watermark=str((last.get("eventTime") or {}).get("watermark", "")),
    )
