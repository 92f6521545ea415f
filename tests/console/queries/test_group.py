"""One group as its page shows it, where a collector reads a feed that is scripted by the second."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from console.monitoring.collector import Collector
from console.monitoring.group_detail import Part
from console.monitoring.verdicts import TREND_MS, WINDOW_MS
from tests.builders.live import Told
from tests.console import cluster_rows
from tests.fakes.broker_feed import NOW_MS, Feed

PER_SECOND = 100
COMMITS_EVERY_S = 5
# The collector looks when a broker tells something, which is each second.
LOOK_S = 1
# Until then every group keeps up.
CHANGES_AT_S = 60
WINDOW_S = WINDOW_MS // 1000
TREND_S = TREND_MS // 1000
SHOWN_WITHIN_S = 60
CHECKED_EVERY_S = 10
RETENTION_MS = 24 * 3_600_000


def end_at(second: int) -> int:
    return 1_000_000 + second * PER_SECOND


@dataclass(frozen=True, kw_only=True)
class Script:
    """What a group commits once it has changed; None: nothing."""

    word: str
    committed: Callable[[int], int | None]
    # When the verdict is true by its rule: what came before has left the window then.
    true_at_s: int = CHANGES_AT_S + WINDOW_S
    # How old the oldest record is that waits then.
    age_ms: int = 1_000


SCRIPTS = {
    "ok": Script(word="OK", committed=end_at, true_at_s=0),
    "slow": Script(
        word="Falling behind",
        committed=lambda second: end_at(CHANGES_AT_S) + 50 * (second - CHANGES_AT_S),
        # Until then it may be a burst.
        true_at_s=CHANGES_AT_S + TREND_S,
    ),
    "stalled": Script(word="Stalled", committed=lambda _second: end_at(CHANGES_AT_S)),
    "stopped": Script(word="Stopped", committed=lambda _second: None),
    "rewound": Script(word="Rewound", committed=lambda second: end_at(second) - 500_000),
    # It commits and goes on, and is a quarter of an hour from losing what it reads.
    "lossy": Script(
        word="Data loss ahead",
        committed=lambda second: end_at(CHANGES_AT_S) + 99 * (second - CHANGES_AT_S),
        true_at_s=CHANGES_AT_S,
        age_ms=RETENTION_MS - 900_000,
    ),
}


class Play:
    """Six groups, a collector, and the browser of somebody who looks at them."""

    def __init__(self, browser: Client, told: Told) -> None:
        self.second = 0
        self.collector = Collector("run")
        self.collector.lags.set_retention({}, RETENTION_MS)
        self._feed = Feed()
        self._browser = browser
        self._told = told
        told.answers["/group"] = self._detail
        for name in SCRIPTS:
            self._feed.group(name)

    @property
    def now_ms(self) -> int:
        return NOW_MS + 1000 * self.second

    def go_on(self) -> None:
        """Let a second pass."""
        self.second += 1
        for topic, script in SCRIPTS.items():
            self._feed.partition(topic, 0, end=end_at(self.second))
            if self.second % COMMITS_EVERY_S == 0:
                has_changed = self.second >= CHANGES_AT_S
                offset = script.committed(self.second) if has_changed else end_at(self.second)
                if offset is not None:
                    self._feed.commit(topic, topic, 0, offset, at_ms=self.now_ms)
        self.collector.take(1, self._feed.tell(), now_ms=self.now_ms)
        if self.second % LOOK_S == 0:
            self.collector.look_at_once(self.now_ms)
        for asked in self.collector.lags.questions().values():
            times = [self._written_ms(place[0]) for _pair, place in asked]
            self.collector.lags.answer(asked, times)

    def _written_ms(self, name: str) -> int | str | None:
        return self.now_ms - (SCRIPTS[name].age_ms if self.second >= CHANGES_AT_S else 1_000)

    def shown(self, name: str) -> str:
        """Return the verdict of a group's page."""
        tables = ("brokers", "topics", "groups", "pairs")
        self._told.tables = {table: dict(self.collector.deltas.rows(table)) for table in tables}
        page = self._browser.get("/group", {"name": name}).content.decode()
        found = re.search(r'id="verdict"><div><span class="st \w+">([^<]+)</span>', page)
        assert found is not None, page
        return found.group(1)

    def _detail(self, *, name: str, topic: str, first: int, rows: int) -> Mapping[str, Any]:
        part = Part(topic=topic, first=first, rows=rows)
        detail = self.collector.group_detail(name, part)
        read: Mapping[str, Any] = json.loads(json.dumps(detail))
        return read


@pytest.mark.slow
def test_six_groups_get_their_verdict_on_the_page_within_a_minute_of_its_truth(
    alice: Client, told: Told, report: Callable[[str], None]
) -> None:
    cluster_rows.cluster()
    play = Play(alice, told)
    while play.second < CHANGES_AT_S - LOOK_S:
        play.go_on()
    assert {name: play.shown(name) for name in SCRIPTS} == dict.fromkeys(SCRIPTS, "OK")

    shown_at: dict[str, int] = {}
    last_s = CHANGES_AT_S + TREND_S + SHOWN_WITHIN_S
    while play.second < last_s:
        play.go_on()
        if play.second % CHECKED_EVERY_S:
            continue
        for name, script in SCRIPTS.items():
            word = play.shown(name)
            if play.second >= script.true_at_s and word == script.word:
                shown_at.setdefault(name, play.second - script.true_at_s)
            # On the way it is OK until it is not, or not known.
            assert word in {"OK", "Unknown", script.word}, (name, play.second)

    report(", ".join(f"{name} after {seconds} s" for name, seconds in shown_at.items()))
    assert shown_at.keys() == SCRIPTS.keys()
    assert max(shown_at[name] for name in SCRIPTS if name != "ok") <= SHOWN_WITHIN_S
    assert {name: play.shown(name) for name in SCRIPTS} == {
        name: script.word for name, script in SCRIPTS.items()
    }
