"""The console's pages while the gateway beside takes the records that it promises to take.

The console is the one of the suite `console`, at its limits, on the machine of the gateway's worker
and of its broker. Who loads the gateway is a process of its own, which asks in a steady pace.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bench import console, console_pages
from bench.broker_targets import ROOT
from bench.console_site import Site, running_site
from bench.measure import Cell, Table

# Requests of one page, some of them beside every step of the load.
SAMPLES: Final = 40
STOP_SECONDS: Final = 60
# Between two requests of pages: busy visitors, not one who keeps a core to himself.
PAUSE_SECONDS: Final = 0.1


def beside(port: int) -> Table:
    """Ask for pages without a load, and again beside one."""
    pages = [
        *console_pages.lists(console.TOPICS, console.GROUPS),
        *(
            page
            for page in console_pages.others(console.TOPICS, console.GROUPS)
            if page.name in {"overview", "group", "brokers"}
        ),
    ]
    kept: list[float] = []
    with running_site(console.SIZE, people=1) as site:
        alone = [late(site, page) for page in pages]
        with loaded(port, kept):
            then = [late(site, page) for page in pages]
    rows: list[tuple[Cell, ...]] = [
        (page.name, SAMPLES, before, after, console_pages.PAGE_MS)
        for page, before, after in zip(pages, alone, then, strict=True)
    ]
    return Table(
        title="the console's pages while the gateway takes 20,000 records/s, 100 in a request",
        columns=("page", "samples", "p95 ms alone", "p95 ms beside", "limit ms"),
        rows=rows,
        notes=(
            f"the gateway took {kept[0]:.0%} of what it was asked for",
            "one console, its collector, one worker, one broker and both clients share the cores",
        ),
    )


def late(site: Site, page: console_pages.Page) -> float:
    """Return the 95th percentile of a page, in milliseconds."""
    paths = [console_pages.in_cluster(path) for path in page.paths]
    seconds = []
    for number in range(SAMPLES):
        time.sleep(PAUSE_SECONDS)
        seconds.append(console_pages.fetched(site, paths[number % len(paths)]).seconds)
    return console_pages.milliseconds(seconds, 0.95)


@contextmanager
def loaded(port: int, kept: list[float]) -> Iterator[None]:
    """Have a process ask for what is promised, until the end; add which share it was given."""
    command = [sys.executable, "-m", "bench.gateway_load", str(port)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n", "the load has ended"
        try:
            yield
        finally:
            told, _ = child.communicate("", timeout=STOP_SECONDS)
    kept.append(float(told))
    assert kept[-1] > 0, "the gateway took nothing of what it was asked for"
