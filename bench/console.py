"""What the console costs at the largest supported size: its collector, then its pages.

Feeds of three made-up brokers are replayed into a collector in a process of its own, which is what
the real one does with what it reads, less the sockets. For the pages, a web server reads from such
a collector. `--screenshots DIR` takes pictures of every page instead.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench import console_pages, console_pictures
from bench.children import done_by
from bench.console_site import running_site
from bench.measure import Table

# The limits that the project promises.
TOPICS: Final = 10_000
PARTITIONS_OF_A_TOPIC: Final = 10
GROUPS: Final = 15_000
PARTITIONS_OF_A_GROUP: Final = 7
MOVING_SHARE: Final = 0.05
SIZE: Final = {
    "topics": TOPICS,
    "partitions": PARTITIONS_OF_A_TOPIC,
    "groups": GROUPS,
    "committed": PARTITIONS_OF_A_GROUP,
    "moving": int(TOPICS * PARTITIONS_OF_A_TOPIC * MOVING_SHARE),
}
SECONDS: Final = 120
# What is promised of it.
MAX_MB: Final = 300
MAX_MOVING_SHARE: Final = 0.15
MAX_RESTING_SHARE: Final = 0.02


def run(screenshots: str | None = None) -> Iterator[Table]:
    if screenshots is not None:
        yield console_pictures.table(Path(screenshots))
        return
    yield collector_table()
    with running_site(SIZE, people=console_pages.PEOPLE) as site:
        yield from console_pages.tables(site, topics=TOPICS, groups=GROUPS)


def collector_table() -> Table:
    told = done_by("bench.console_child", {**SIZE, "seconds": SECONDS}, seconds=600)
    return Table(
        title=f"collector: {TOPICS * PARTITIONS_OF_A_TOPIC:,} partitions, {GROUPS:,} groups",
        columns=("what", "measured", "limit"),
        rows=(
            ("memory, highest, MB", float(told["peak_mb"]), MAX_MB),
            ("share of a core, 5 % of partitions move", told["moving_share"], MAX_MOVING_SHARE),
            ("share of a core, at rest", told["resting_share"], MAX_RESTING_SHARE),
            ("first reading, CPU s", told["first_s"], None),
            ("longest look, CPU ms", told["longest_look_ms"], None),
            ("bytes of a whole snapshot, MB", told["whole_mb"], None),
            ("file after a simulated hour, MB", told["hour_mb"], None),
        ),
        notes=(
            f"{SECONDS} s of feeds, read each second, looked at every three, sampled every ten",
            "the process includes Django, which the real one loads",
        ),
    )
