"""What pages of the console cost a browser and the web server, at the largest supported size.

Pages are asked for one after the other, over HTTP, while the collector beside the web server takes
what moves. Weights are of bodies compressed as a proxy or a browser's server would.
"""

import json
import re
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin

from bench.console_feeds import group_name, topic_name
from bench.console_site import CLUSTER_ID, HOST, Got, Site
from bench.measure import Cell, Table
from bench.processes import Process
from brokers.protocol.records.compression import Compression, compress

KB: Final = 1000
# Lists are what people page through; the other pages are opened once in a while.
LIST_SAMPLES: Final = 200
PAGE_SAMPLES: Final = 50
LIST_MS: Final = 200.0
PAGE_MS: Final = 300.0
CHART_MS: Final = 150.0
LIST_KB: Final = 15.0
FIRST_PAGE_KB: Final = 150.0
CHART_POINTS: Final = 2_000
WEEK_S: Final = 7 * 24 * 3600
STREAMS: Final = 200
# A user may have so many: console.events.hub.MAX_PER_USER is 30.
STREAMS_OF_A_PERSON: Final = 25
PEOPLE: Final = -(-STREAMS // STREAMS_OF_A_PERSON)
STREAM_SECONDS: Final = 30.0
STREAM_SHARE: Final = 0.05
# Modules name others by these, and so what they load later; a page names its own by attributes.
IMPORTED: Final = re.compile(rb"""(?:from|import|URL)\s*\(?["'](\./[^"']+|\.\./[^"']+)["']""")
NAMED: Final = re.compile(rb"""(?:src|href)="(/static/[^"]+)\"""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    name: str
    # Asked for in turn, so that no answer is one that was kept.
    paths: Sequence[str]
    is_list: bool = False


def lists(topics: int, groups: int) -> list[Page]:
    last = topics // 100
    return [
        Page(
            name="topics",
            paths=[
                "/topics",
                f"/topics?page={last}",
                "/topics?sort=-lag",
                "/topics?sort=-size",
                f"/topics?q={topic_name(topics // 2)[:-1]}",
            ],
            is_list=True,
        ),
        Page(
            name="groups",
            paths=[
                "/groups",
                f"/groups?page={groups // 100}",
                "/groups?sort=lag",
                f"/groups?q={group_name(groups // 2)[:-1]}",
            ],
            is_list=True,
        ),
    ]


def others(topics: int, groups: int) -> list[Page]:
    topic, group = topic_name(topics // 2), group_name(groups // 2)
    tabs = ("partitions", "consumers", "configs", "charts")
    return [
        Page(name="overview", paths=["/"]),
        *(Page(name=f"topic, {tab}", paths=[f"/topics/{topic}?tab={tab}"]) for tab in tabs),
        Page(name="topic, messages", paths=[f"/topics/{topic}/messages"]),
        Page(name="topic, new", paths=["/topics/+new"]),
        Page(name="topic, more partitions", paths=[f"/topics/{topic}/partitions"]),
        Page(name="topic, delete", paths=[f"/topics/{topic}/delete"]),
        Page(name="group", paths=[f"/group?name={group}"]),
        Page(name="group, reset", paths=[f"/group/reset?name={group}"]),
        Page(name="brokers", paths=["/brokers"]),
        Page(
            name="broker", paths=["/brokers/1", "/brokers/1?tab=clients", "/brokers/1?tab=configs"]
        ),
        Page(name="broker, restart", paths=["/brokers/1/restart"]),
        Page(name="search", paths=[f"/search?q={topic[:-2]}", f"/search?q={group[:-2]}"]),
        Page(name="changes", paths=["/changes"]),
        Page(name="users", paths=["/users"]),
    ]


def tables(site: Site, *, topics: int, groups: int) -> Iterator[Table]:
    before = site.calls.count
    rows = [
        *(row_of(site, page, LIST_SAMPLES) for page in lists(topics, groups)),
        *(row_of(site, page, PAGE_SAMPLES) for page in others(topics, groups)),
    ]
    calls = site.calls.count - before
    assert calls == 0, f"pages asked brokers {calls} times: they read what the collector told"
    yield Table(
        title=f"pages: {topics:,} topics, {groups:,} groups, one asker",
        columns=("page", "samples", "p50 ms", "p95 ms", "limit ms", "KB gz", "limit KB"),
        rows=rows,
        notes=("brokers were asked 0 times; the collector beside took the moving partitions",),
    )
    yield assets_table(site)
    yield chart_table(site)
    yield streams_table(site)


def row_of(site: Site, page: Page, samples: int) -> Sequence[Cell]:
    seconds, weight = [], 0.0
    for number in range(samples):
        got = fetched(site, in_cluster(page.paths[number % len(page.paths)]))
        seconds.append(got.seconds)
        weight = max(weight, weight_kb(got.body))
    return (
        page.name,
        samples,
        milliseconds(seconds, 0.5),
        milliseconds(seconds, 0.95),
        LIST_MS if page.is_list else PAGE_MS,
        weight,
        LIST_KB if page.is_list else None,
    )


def assets_table(site: Site) -> Table:
    """What a browser with an empty cache loads with the first page."""
    page = fetched(site, in_cluster("/"))
    weights = {"/": weight_kb(page.body)}
    waiting = [name.decode() for name in NAMED.findall(page.body)]
    while waiting:
        name = waiting.pop()
        if name not in weights:
            body = fetched(site, name).body
            weights[name] = weight_kb(body)
            waiting += [urljoin(name, other.decode()) for other in IMPORTED.findall(body)]
    return Table(
        title="the first page with all that it loads",
        columns=("what", "KB gz", "limit KB"),
        rows=[
            *((name, weight, None) for name, weight in sorted(weights.items())),
            ("all", sum(weights.values()), FIRST_PAGE_KB),
        ],
    )


def chart_table(site: Site, *, samples: int = PAGE_SAMPLES) -> Table:
    """The longest chart of each kind of series that has a past."""
    rows = []
    kinds = {"cluster": "", "broker": "1", "topic": topic_name(0), "group": group_name(0)}
    metrics = {"cluster": "bytes_in", "broker": "bytes_in", "topic": "bytes_in", "group": "lag"}
    for kind, name in kinds.items():
        path = f"/series?kind={kind}&name={name}&metric={metrics[kind]}&range={WEEK_S}"
        got = [fetched(site, in_cluster(path)) for _ in range(samples)]
        seconds = [each.seconds for each in got]
        points = max(len(line) for each in got for line in json.loads(each.body)["samples"])
        rows.append(
            (
                *(kind, samples, milliseconds(seconds, 0.5), milliseconds(seconds, 0.95)),
                *(CHART_MS, points, CHART_POINTS),
            )
        )
    return Table(
        title="a chart of seven days",
        columns=("kind", "samples", "p50 ms", "p95 ms", "limit ms", "points", "limit"),
        rows=rows,
    )


def streams_table(site: Site) -> Table:
    """What open tabs cost that nobody looks at, which the web server cannot know."""
    streams = [stream(site, number // STREAMS_OF_A_PERSON) for number in range(STREAMS)]
    process = Process(site.pid)
    try:
        before, began = process.cpu_seconds(), time.monotonic()
        heard = drained(streams, STREAM_SECONDS)
        spent = process.cpu_seconds() - before
        share = spent / (time.monotonic() - began)
    finally:
        for each in streams:
            each.close()
    return Table(
        title=f"{STREAMS} open event streams",
        columns=("what", "measured", "limit"),
        rows=[
            ("share of a core", share, STREAM_SHARE),
            ("bytes per stream and second", heard / STREAMS / STREAM_SECONDS, None),
        ],
        notes=(f"{STREAM_SECONDS:g} s; the web server mirrors the collector meanwhile",),
    )


def stream(site: Site, person: int) -> socket.socket:
    """Open an event stream as a page does, and read until it has begun."""
    made = socket.create_connection((HOST, site.port), timeout=10)
    fields = {"Host": f"{HOST}:{site.port}", "Accept": "text/event-stream", **site.headers(person)}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    path = f"/events?topic=cluster:{CLUSTER_ID}&topic=live:{CLUSTER_ID}"
    made.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
    said = made.recv(65_536)
    assert b" 200 " in said.partition(b"\r\n")[0], said
    made.setblocking(False)
    return made


def drained(streams: Sequence[socket.socket], seconds: float) -> int:
    """Read all that comes, four times a second; return the bytes."""
    heard = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.25)
        for each in streams:
            try:
                piece = each.recv(1 << 20)
            except BlockingIOError:
                continue
            assert piece, "the web server has ended an event stream"
            heard += len(piece)
    return heard


def fetched(site: Site, path: str) -> Got:
    got = site.get(path)
    assert got.status == 200, f"{path}: {got.status} {got.body[:500]!r}"
    return got


def in_cluster(path: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}cluster={CLUSTER_ID}"


def milliseconds(seconds: Sequence[float], share: float) -> float:
    """Return the value that so large a share of the samples does not exceed."""
    return 1000 * sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))]


def weight_kb(body: bytes) -> float:
    return len(compress(Compression.GZIP, body)) / KB
