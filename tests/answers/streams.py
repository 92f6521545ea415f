"""What streams begin with: server-sent events for programs and for pages, and lines of records."""

import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from tests.answers.asking import PATIENCE_S, Answer, Ask, block, head
from tests.answers.home import AnswersHome, cookie_header
from tests.answers.masking import Masks, written

# Streams that end by themselves: requested like any other call.
WHOLE: Final = (
    "topics=orders&from=beginning&max=6",
    "topics=orders&from=beginning&max=2&partition=1&format=json",
    "topics=orders,quiet&from=beginning&max=6&format=binary",
    "pattern=ord.*&from=beginning&max=6",
    *("", "topics=", "topics=none-such", "topics=orders&max=x", "pattern=(", "bogus=1"),
    "pattern=a&topics=b",
)
# Streams without an end: read up to so many blank lines.
OPEN: Final = (
    ("reader", "/sse/v1?topics=orders&from=end&wait=1", "text/event-stream", 1),
    ("admin", "/v1/topics/orders/records?from=0:3,1:3", "application/x-ndjson", 1),
)
MESSAGES: Final = (
    "/messages/stream?cluster={c}&topic=orders&partitions=0&mode=oldest&limit=6",
    "/messages/stream?cluster={c}&topic=orders&mode=newest&limit=2&partitions=0",
    "/messages/stream?cluster={c}&topic=orders&mode=offset&from=1&limit=2&partitions=1",
    "/messages/stream?cluster={c}&topic=orders&partitions=0&mode=oldest&limit=6&filter=n",
    "/messages/stream?cluster={c}&topic=orders&mode=none",
    "/messages/stream?cluster={c}&topic=none-such&mode=oldest",
    "/messages/stream?cluster=none&topic=orders",
    "/messages/export?cluster={c}&topic=orders&partitions=0&mode=oldest&limit=6&form=csv",
    "/messages/export?cluster={c}&topic=orders&partitions=0&mode=oldest&limit=6&form=ndjson",
    "/messages/export?cluster={c}&topic=orders&form=none",
    "/messages/record?cluster={c}&topic=orders&partition=0&offset=0&part=value",
    "/messages/record?cluster={c}&topic=orders&partition=0&offset=0&part=header:0",
    "/messages/record?cluster={c}&topic=orders&partition=0&offset=99&part=value",
    "/messages/record?cluster={c}&topic=orders",
)
EVENTS: Final = (
    *("", "?topic=none", "?topic=cluster:none", "?topic=topics:{c}"),
    *("?topic=cluster:{c}", "?topic=live:{c}", "?topic=cluster:{c}&topic=live:{c}"),
)


def record(home: AnswersHome) -> Iterator[str]:
    masks = home.masks()
    gateway, web = home.door(home.gateway), home.door(home.web)
    for query in WHOLE:
        for door, by in ((gateway, "admin"), (gateway, "reader"), (web, "admin")):
            ask = Ask(method="GET", path=f"/sse/v1?{query}", by=by)
            yield from events(ask, door.ask(ask), masks)
    resumed = {"Last-Event-ID": "orders:0:1,orders:1:3"}
    ask = Ask(method="GET", path="/sse/v1?topics=orders&max=2", headers=resumed)
    yield from events(ask, gateway.ask(ask), masks)
    for by, path, accept, count in OPEN:
        ask = Ask(method="GET", path=path, by=by, headers={"Accept": accept})
        yield from events(ask, beginning(home.gateway, ask, home.callers()[by], count), masks)
    users = {name: cookie_header(home.signed_in(name)) for name in ("vera", "otto", "nora")}
    door = home.door(home.web, **users)
    for target in MESSAGES:
        for by in ("vera", "otto", "nobody"):
            ask = Ask(method="GET", path=target.replace("{c}", home.cluster_id), by=by)
            yield from block(ask, door.ask(ask), masks)
    for query in EVENTS:
        for by in ("vera", "nora", "nobody"):
            path = f"/events{query.replace('{c}', home.cluster_id)}"
            ask = Ask(method="GET", path=path, by=by)
            yield from names_of(ask, beginning(home.web, ask, users.get(by, {}), 3), masks)


def beginning(address: str, ask: Ask, headers: Mapping[str, str], count: int) -> Answer:
    """Read an answer up to so many events, or lines, and close the connection."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE_S)
    connection.request(ask.method, ask.path, headers={**headers, **ask.headers})
    found = connection.getresponse()
    body = b""
    if found.status == 200:
        end = b"\n\n" if found.headers.get_content_type() == "text/event-stream" else b"\n"
        while body.count(end) < count and (line := found.readline()):
            body += line
    else:
        body = found.read()
    pairs = [(name.lower(), value) for name, value in found.getheaders()]
    connection.close()
    return Answer(status=found.status, headers=pairs, body=body)


def events(ask: Ask, answer: Answer, masks: Masks) -> Iterator[str]:
    """Write a stream; records that came in several events are written as one."""
    if answer.header("content-type").partition(";")[0] != "text/event-stream":
        yield from block(ask, answer, masks)
        return
    yield masks.text(f"{ask.by}: {ask.method} {ask.path} {dict(ask.headers) or ''}")
    yield "    " + masks.text(head(answer))
    records = []
    for event in answer.body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in event.splitlines() if ": " in line)
        if fields.get("event") == "batch":
            records += json.loads(fields["data"])["records"]
        # The number of heartbeats depends on time.
        elif fields and fields.get("event") != "heartbeat":
            yield f"    event {fields.get('event')} id {fields.get('id')}"
            yield from (f"    {line}" for line in written(masks.json(json.loads(fields["data"]))))
    # Partitions are read side by side.
    records.sort(key=lambda record: (record["topic"], record["partition"], record["offset"]))
    yield from (f"    {masks.text(line)}" for line in written(masks.json(records)))
    yield ""


def names_of(ask: Ask, answer: Answer, masks: Masks) -> Iterator[str]:
    """Write only the names of events: their data depends on the moment."""
    yield masks.text(f"{ask.by}: {ask.method} {ask.path}")
    yield "    " + masks.text(head(answer))
    if answer.status == 200:
        lines = answer.body.decode().splitlines()
        names = {line for line in lines if line.startswith("event: ")}
        yield f"    {sorted(names)}"
    yield ""
