"""What Kafka Connect's REST is asked, below its prefix and at its own port."""

import time
from collections.abc import Iterator
from typing import Any, Final

from tests.answers.asking import CALLERS, FEWER, PATIENCE_S, Answer, Ask, Door, block, sweep, values
from tests.answers.home import AnswersHome

PREFIX: Final = "/connect"
ONE: Final = "/connectors/none-such"
OURS: Final = f"/samsa{ONE}"
PATHS: Final = (
    *("", "/", "/health", "/connectors", "/connectors/", ONE, f"{ONE}/config", f"{ONE}/status"),
    *(f"{ONE}/tasks", f"{ONE}/tasks/0/status", f"{ONE}/tasks/x/status", f"{ONE}/tasks/0/restart"),
    *(f"{ONE}/restart", f"{ONE}/pause", f"{ONE}/resume", f"{ONE}/stop", f"{ONE}/offsets"),
    *(f"{ONE}/topics", f"{ONE}/topics/reset", f"{ONE}/none-such", "/connector-plugins"),
    *("/connector-plugins/none/config", "/connector-plugins/none/config/validate"),
    *("/admin/loggers", "/admin/loggers/none.such", "/none-such", "/a%2Fb"),
    *(f"{OURS}/dead-letters", f"{OURS}/dead-letters/causes", f"{OURS}/redrives"),
    *(f"{OURS}/redrives/plan", f"{OURS}/redrives/1", f"{OURS}/redrives/x"),
    *(f"{OURS}/redrives/1/stop", f"{OURS}/redrives/1/resume"),
)
SINK: Final = {"connector.class": "FileStreamSink", "topics": "orders", "file": "out.txt"}
AT: Final = "/connectors/kept"
STOPPED: Final = "STOPPED"


def record(home: AnswersHome) -> Iterator[str]:
    masks = home.masks()
    at_web, at_port = home.door(home.web), home.door(home.connect)
    for ask in STORY:
        below = Ask(
            method=ask.method,
            path=f"{PREFIX}{ask.path}",
            body=ask.body,
            by=ask.by,
            headers=ask.headers,
        )
        yield from block(below, answer_of(at_web, below), masks)
    yield from ("## every path by every method", "")
    yield from sweep(at_web, [f"{PREFIX}{path}" for path in PATHS], CALLERS, masks)
    yield from ("", "## at its own port", "")
    yield from sweep(at_port, [path or "/" for path in PATHS[1:]], FEWER, masks)
    for path in ("/", "/connectors", "/login", "/connect/connectors"):
        ask = Ask(method="GET", path=path)
        yield from block(ask, at_port.ask(ask), masks)


def answer_of(door: Door, ask: Ask) -> Answer:
    """Ask; where a body is the name of a state, wait until the answer has it."""
    if ask.method != "WAIT":
        return door.ask(ask)
    waited = Ask(method="GET", path=ask.path, by=ask.by)
    end = time.monotonic() + PATIENCE_S
    # Each call takes some milliseconds there.
    while ask.body.encode() not in (answer := door.ask(waited)).body:
        assert time.monotonic() < end, f"{ask.path} did not answer {ask.body}: {answer.body!r}"
    return answer


def get(path: str, by: str = "admin") -> Ask:
    return Ask(method="GET", path=path, by=by)


def worker() -> Iterator[Ask]:
    for path in ("/", "/health", "/connectors", "/connector-plugins"):
        yield get(path)
    yield get("/connector-plugins?connectorsOnly=false")
    yield get("/connector-plugins/FileStreamSink/config")
    yield get("/admin/loggers/root")
    for body in values({"level": "WARN"}, {"level": "NONE"}, {}, b"{"):
        yield Ask(method="PUT", path="/admin/loggers/connectors.sdk", body=body)
    yield Ask(method="PUT", path="/admin/loggers/root", body={"level": "WARN"}, by="reader")
    validate = "/connector-plugins/FileStreamSink/config/validate"
    yield Ask(method="PUT", path=validate, body={**SINK, "name": "kept"})
    yield Ask(method="PUT", path=validate, body={"tasks.max": "x", "connector.class": "none"})


def created() -> Iterator[Ask]:
    made: dict[str, Any] = {"name": "kept", "config": SINK, "initial_state": STOPPED}
    yield Ask(method="POST", path="/connectors", body=made, by="reader")
    yield Ask(method="POST", path="/connectors", body=made)
    yield Ask(method="WAIT", path=f"{AT}/status", body=STOPPED)
    bodies: tuple[Any, ...] = (
        *(made, {"name": "b"}, {"name": "b", "config": {}}, {}, [], b"{", b""),
        made | {"name": "b", "config": SINK | {"tasks.max": "x"}},
        made | {"name": "b", "initial_state": "NONE"},
        made | {"name": "b", "config": SINK | {"connector.class": "none"}},
    )
    yield from (Ask(method="POST", path="/connectors", body=body) for body in bodies)
    typed = {"Content-Type": "text/plain"}
    yield Ask(method="POST", path="/connectors", body=b"{}", headers=typed)


def kept() -> Iterator[Ask]:
    for path in ("", "/config", "/tasks", "/status", "/topics", "/offsets", "/tasks/0/status"):
        yield get(f"{AT}{path}")
    yield get("/connectors?expand=info&expand=status")
    yield get(AT, "reader")
    yield Ask(method="PUT", path=f"{AT}/config", body=SINK | {"tasks.max": "2"})
    yield Ask(method="PUT", path=f"{AT}/config", body=SINK | {"tasks.max": "x"})
    yield Ask(method="PATCH", path=f"{AT}/config", body={"tasks.max": "1"})
    place = {"kafka_topic": "orders", "kafka_partition": 0}
    offset = {"partition": place, "offset": {"kafka_offset": 2}}
    for body in values({"offsets": [offset]}, {"offsets": 5}, {}):
        yield Ask(method="PATCH", path=f"{AT}/offsets", body=body)
    yield get(f"{AT}/offsets")
    yield Ask(method="DELETE", path=f"{AT}/offsets")
    yield Ask(method="PUT", path=f"{AT}/topics/reset")
    for verb in ("pause", "stop"):
        yield Ask(method="PUT", path=f"{AT}/{verb}", by="reader")
        yield Ask(method="PUT", path=f"{AT}/{verb}")
    yield Ask(method="WAIT", path=f"{AT}/status", body=STOPPED)
    yield Ask(method="POST", path=f"{AT}/tasks/0/restart")


def letters() -> Iterator[Ask]:
    at = f"/samsa{AT}"
    for path in ("dead-letters", "dead-letters/causes", "dead-letters?before=x", "redrives"):
        yield get(f"{at}/{path}")
    for body in values({}, {"causes": ["none"]}, {"bogus": 1}, []):
        yield Ask(method="POST", path=f"{at}/redrives/plan", body=body)
    for body in values({}, {"seal": "none"}):
        yield Ask(method="POST", path=f"{at}/redrives", body=body)


def deleted() -> Iterator[Ask]:
    yield Ask(method="DELETE", path=AT, by="reader")
    yield Ask(method="DELETE", path=AT)
    yield Ask(method="DELETE", path=AT)
    yield get(AT)


STORY: Final = (*worker(), *created(), *kept(), *letters(), *deleted())
