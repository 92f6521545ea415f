"""Each house rule holds in the whole project, and finds what it is there to find."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tidy import rules
from tests.tidy.project import ROOT, Source, sources

Rule = Callable[[Source], Iterator[str]]


def unfinished(source: Source) -> Iterator[str]:
    gaps = Path(ROOT, "docs", "gaps.md").read_text(encoding="utf-8")
    return rules.leftovers(source, gaps)


ALL_RULES: list[Rule] = [
    rules.unnamed,
    rules.foreign_time,
    rules.foreign_environment,
    rules.sleeps,
    rules.broad_excepts,
    unfinished,
]


@pytest.mark.parametrize("rule", ALL_RULES)
def test_the_project_keeps_the_rule(rule: Rule) -> None:
    complaints = [complaint for source in sources() for complaint in rule(source)]

    assert complaints == []


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (rules.unnamed, "brokers/storage/file_utils.py", ""),
        (rules.unnamed, "brokers/common/x.py", ""),
        (rules.unnamed, "brokers/storage/x.py", "class SegmentManager: ..."),
        (rules.unnamed, "brokers/storage/x.py", "def _process_batch(): ..."),
        (rules.foreign_time, "brokers/storage/x.py", "import time"),
        (rules.foreign_time, "brokers/storage/x.py", "from time import monotonic"),
        (rules.foreign_time, "brokers/storage/x.py", "import datetime"),
        (rules.foreign_time, "brokers/storage/x.py", "from datetime import *"),
        (rules.foreign_time, "brokers/storage/x.py", "from datetime import datetime as dt"),
        (rules.foreign_time, "brokers/storage/x.py", "from datetime import date"),
        (
            rules.foreign_time,
            "brokers/controlplane/x.py",
            "from django.utils import timezone as tz",
        ),
        (rules.foreign_environment, "brokers/storage/x.py", "import os\nos.environ['HOME']"),
        (rules.foreign_environment, "brokers/storage/x.py", "from os import getenv"),
        (rules.sleeps, "tests/test_x.py", "import time\ntime.sleep(1)"),
        (rules.sleeps, "tests/test_x.py", "import time as clock\nclock.sleep(1)"),
        (rules.sleeps, "tests/test_x.py", "from asyncio import sleep as nap\nawait nap(1)"),
        (rules.broad_excepts, "cli/x.py", "try:\n    f()\nexcept Exception:\n    g()"),
        (rules.broad_excepts, "cli/x.py", "try:\n    f()\nexcept:  # noqa: E722\n    g()"),
        (unfinished, "cli/x.py", "x = 1  # " + "TO" + "DO: later"),
        (unfinished, "cli/x.py", "x = 1  # " + "TO" + "DO(no line says this): later"),
    ],
)
def test_a_planted_breach_is_found(rule: Rule, path: str, text: str) -> None:
    assert len(list(rule(Source.parse(path, text)))) == 1


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (rules.unnamed, "brokers/storage/x.py", "def base_offset(): ..."),
        (rules.foreign_time, "brokers/clock.py", "import time"),
        (rules.foreign_time, "bench/x.py", "import time"),
        (rules.foreign_time, "brokers/controlplane/x.py", "from datetime import UTC, timedelta"),
        (rules.foreign_time, "brokers/controlplane/x.py", "import django"),
        (rules.foreign_environment, "brokers/config.py", "import os\nos.environ['HOME']"),
        (rules.sleeps, "tests/test_x.py", "asyncio.sleep(0)"),
        (
            rules.broad_excepts,
            "cli/x.py",
            "try:\n    f()\n# One connection must not end the others.\nexcept Exception:\n    g()",
        ),
    ],
)
def test_what_the_house_allows_passes(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source.parse(path, text))) == []
