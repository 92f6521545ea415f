"""What a process knows of its session: which Spark, since when, and what went wrong last.

Another thread may ask at any time and never waits: while a session is made or works, its lock is
held for minutes, and Java may not answer at all. So facts are kept as one value that is replaced.
"""

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

# Of an error: its first lines say what it is about.
MAX_LINES: Final = 12
MAX_CHARS: Final = 1500
# Streaming queries that are told; a session with more is not one of ours.
MAX_STREAMS: Final = 20
# What a line of a JVM that dies has in it, among all that is printed beside it.
LAST_WORDS: Final = re.compile(
    r"(?i)out ?of ?memory|insufficient memory|fatal|could not|cannot|error:"
)
OUTPUT_BYTES: Final = 65_536
HIDDEN: Final = "…"


class Stage(Enum):
    NONE = "none"
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What is behind a session. None is what it does not know, as of a server elsewhere."""

    version: str
    java_version: int | None = None
    java_origin: str = ""
    # Of the JVM that has the driver; 0 for none of ours.
    process: int = 0
    heap_bytes: int | None = None
    cores: int | None = None
    # Where its own pages are; empty while they are off.
    ui_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A streaming query of the session, as Spark tells it."""

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
    # Since when the stage is what it is; 0 where nothing began.
    since_ms: int = 0
    engine: EngineFacts | None = None
    streams: tuple[Stream, ...] = ()
    failure: str = ""
    failed_ms: int = 0


class Chronicle:
    """The facts of one process."""

    def __init__(self) -> None:
        self.facts = Facts()
        self._token = ""

    @contextmanager
    def starting(self, target: Target) -> Iterator[None]:
        """Note that a session is made, and why it was not."""
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
        """Note what changes while a session works."""
        engine = self.facts.engine
        if engine is not None:
            engine = replace(engine, cores=cores)
            self.facts = replace(self.facts, engine=engine, streams=streams)

    def failed(self, said: str) -> None:
        """Note that a session ended by an error."""
        self.facts = replace(
            self.facts,
            since_ms=now_ms(),
            stage=Stage.ENDED,
            failure=first_lines(said, self._token),
            failed_ms=now_ms(),
            streams=(),
        )

    def closed(self) -> None:
        """Note that a session was ended on purpose."""
        self.facts = replace(self.facts, since_ms=now_ms(), stage=Stage.ENDED, streams=())


def first_lines(said: str, token: str) -> str:
    """Return what an error is about, without what is secret in it."""
    known = said.replace(token, HIDDEN) if token else said
    return "\n".join(shown(line) for line in known.strip().splitlines()[:MAX_LINES])[:MAX_CHARS]


def now_ms() -> int:
    return int(1000 * time.time())


def last_words(output: Path) -> str:
    """Return the lines in which a JVM has said why it ends; empty where it said nothing."""
    try:
        with output.open("rb") as file:
            text = file.read(OUTPUT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(line for line in text.splitlines() if LAST_WORDS.search(line))


def streams_of(spark: "SparkSession") -> tuple[Stream, ...]:
    """Return the streaming queries that run in a session."""
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
