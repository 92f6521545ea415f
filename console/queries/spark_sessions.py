"""Reads the sessions of Spark that workers report, and why there is none."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from connectors.worker_reports import Report
from console import durations
from console.queries.lag import Mark
from console.queries.reading import moment

# The states of a session: the mark, and its meaning for the user.
RUNNING: Final = Mark(
    state="ok", word="Running", meaning="Connectors run their batches in it, one after the other."
)
STARTING: Final = Mark(
    state="warn", word="Starting", meaning="Java and Spark start, which takes about five seconds."
)
READY: Final = Mark(
    state="ok", word="Ready", meaning="The worker is up; Spark starts in it with the first batch."
)
ENDED: Final = Mark(
    state="bad", word="Ended", meaning="It has failed. The next batch starts another one by itself."
)
STOPPED: Final = Mark(
    state="stale",
    word="Stopped",
    meaning="Its worker was stopped, for example because no connector needs it.",
)
GONE: Final = Mark(
    state="stale",
    word="Not heard of",
    meaning="The worker has stopped reporting: it was killed, or its host is away. This is its last"
    " report.",
)
NO_WORKER: Final = Mark(
    state="warn",
    word="No worker",
    meaning="The worker of Spark comes up some seconds after the first connector;"
    " ./samsa status shows it.",
)
UNWANTED: Final = Mark(
    state="stale",
    word="Not running",
    meaning="No connector needs it. It starts with the first one, and takes no memory until then.",
)
MISSING: Final = Mark(
    state="stale",
    word="Not installed",
    meaning="Connectors on Spark need the extra spark, where their worker runs.",
)
LOOPBACK: Final = "http://127.0.0.1:"
STAGES: Final[Mapping[str, Mark]] = {
    "none": READY,
    "starting": STARTING,
    "running": RUNNING,
    "ended": ENDED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A streaming query that runs in the session itself."""

    name: str
    message: str
    batch: int | None
    rows: int | None
    rows_per_s: float | None
    took: str
    watermark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one worker reports of its Spark. Unknown values are None."""

    mark: Mark
    worker: str = ""
    host: str = ""
    # When the worker reported this; None if no worker has.
    told_at: datetime | None = None
    is_live: bool = False
    target: str = ""
    version: str = ""
    java: str = ""
    since: datetime | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    heap_bytes: int | None = None
    ui_url: str = ""
    wants_ui: bool = False
    failure: str = ""
    failed_at: datetime | None = None
    logs: str = ""
    streams: tuple[Stream, ...] = ()


def sessions_of(
    told: Iterable[Report], *, is_wanted: bool, is_installed: bool
) -> tuple[Session, ...]:
    """Return the live sessions; else the last one, or the reason why there is none.

    A stopped worker reports that, and a silent one may have a successor: neither is shown beside a
    live one.
    """
    found = [_session(report) for report in told]
    live = tuple(one for one in found if one.is_live)
    if live:
        return live
    # A needed worker was not stopped for good; one that is not needed is not missed.
    last = [one for one in found if (one.mark is STOPPED) is not is_wanted]
    if last:
        return (last[0],)
    if not is_installed:
        return (Session(mark=MISSING),)
    return (Session(mark=NO_WORKER if is_wanted else UNWANTED),)


def _session(report: Report) -> Session:
    told = report.told
    engine: Mapping[str, Any] = told.get("engine") or {}
    is_stopped = bool(told.get("is_stopped"))
    is_live = not report.is_silent and not is_stopped
    return Session(
        mark=_mark(told, is_live=is_live, is_stopped=is_stopped),
        worker=report.worker.partition(".")[0],
        host=report.host,
        told_at=report.told_at,
        is_live=is_live,
        target=str(told.get("target", "")),
        version=str(engine.get("version", "")),
        java=_java(engine),
        since=moment_of(told.get("since_ms")),
        cores=engine.get("cores"),
        memory_bytes=told.get("memory_bytes"),
        heap_bytes=engine.get("heap_bytes"),
        ui_url=_pages_of(told, engine) if is_live else "",
        wants_ui=bool(told.get("wants_ui")),
        failure=str(told.get("failure", "")),
        failed_at=moment_of(told.get("failed_ms")),
        logs=str(told.get("logs", "")),
        streams=tuple(_stream(one) for one in told.get("streams", ())) if is_live else (),
    )


def _mark(told: Mapping[str, Any], *, is_live: bool, is_stopped: bool) -> Mark:
    if is_stopped:
        return STOPPED
    if not is_live:
        return GONE
    if not told.get("is_installed", True):
        return MISSING
    # A bad configuration is refused before any stage starts.
    is_refused = told.get("stage") == "none" and bool(told.get("failure"))
    return ENDED if is_refused else STAGES.get(str(told.get("stage")), GONE)


def _pages_of(told: Mapping[str, Any], engine: Mapping[str, Any]) -> str:
    """Return the address of Spark's own pages; no other address becomes a link."""
    url = str(engine.get("ui_url", ""))
    return url if told.get("stage") == "running" and url.startswith(LOOPBACK) else ""


def _java(engine: Mapping[str, Any]) -> str:
    version, origin = engine.get("java_version"), engine.get("java_origin")
    return f"{version}, {origin}" if version and origin else str(version or "")


def _stream(told: Mapping[str, Any]) -> Stream:
    took_ms = told.get("took_ms")
    return Stream(
        name=str(told.get("name", "")),
        message=str(told.get("message", "")),
        batch=told.get("batch"),
        rows=told.get("rows"),
        rows_per_s=told.get("rows_per_s"),
        took="" if took_ms is None else durations.span(took_ms / 1000),
        watermark=str(told.get("watermark", "")),
    )


def moment_of(milliseconds: int | None) -> datetime | None:
    return moment(milliseconds / 1000) if milliseconds else None
