"""Verdicts over a quarter of an hour of scripted groups, from the collector to the pages."""

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from django.test import Client

from console.monitoring.collector import Collector
from console.monitoring.group_detail import Part
from console.monitoring.tables import GroupRow
from console.queries.lag import MARKS
from console.queries.needs import NAMED_GROUPS
from tests.builders.live import Told
from tests.console import cluster_rows
from tests.console.verdict_series import LASTS_S, STORIES, Stage
from tests.fakes.broker_feed import NOW_MS, Feed

# The list is read this often, and a page of each group.
LISTED_EVERY_S = 15
SHOWN_EVERY_S = 180
TABLES = ("brokers", "topics", "groups", "pairs")


class Play:
    """All groups in one feed, the collector that reads it, and a browser."""

    def __init__(self, browser: Client, told: Told) -> None:
        self.second = 0
        self.collector = Collector("run")
        self._browser = browser
        self._told = told
        self._feed = Feed()
        self._stages = {
            name: Stage(self._feed, name, story.partitions) for name, story in STORIES.items()
        }
        self._scripts = [STORIES[name].script(stage) for name, stage in self._stages.items()]
        told.answers["/group"] = self._detail

    @property
    def now_ms(self) -> int:
        return NOW_MS + 1000 * self.second

    def seconds(self) -> Iterator[int]:
        """Let second after second pass."""
        for self.second in range(LASTS_S):
            for stage in self._stages.values():
                stage.second = self.second
            for script in self._scripts:
                next(script)
            self.collector.take(1, self._feed.tell(), now_ms=self.now_ms)
            self.collector.look_at_once(self.now_ms)
            for asked in self.collector.lags.questions().values():
                self.collector.lags.answer(asked, [self.now_ms - 10_000] * len(asked))
            yield self.second

    def get(self, path: str, **query: str) -> str:
        self._told.tables = {each: dict(self.collector.deltas.rows(each)) for each in TABLES}
        return html.unescape(self._browser.get(path, query).content.decode())

    def word(self, name: str) -> str:
        row = GroupRow(*self.collector.deltas.rows("groups")[name])
        return MARKS[row.verdict_value].word

    def disagreements(self) -> Iterator[str]:
        """Compare the list of groups with the badge and the overview."""
        marks = listed(self.get("/groups"))
        assert marks.keys() == STORIES.keys()
        alarms = {name for name, (dot, _word) in marks.items() if dot in {"warn", "bad"}}
        overview = self.get("/")
        badge = re.search(r'title="Groups that need attention">(\d+)<', overview)
        if badge is None or int(badge[1]) != len(alarms):
            yield f"the badge is not {len(alarms)}"
        named = set(re.findall(r"Group ([\w-]+) ", overview))
        if not named <= alarms or len(named) != min(len(alarms), NAMED_GROUPS):
            yield f"the overview names {named}, and the list has {alarms}"
        yield from (
            f"the list calls {name} {word}, and it is {self.word(name)}"
            for name, (_dot, word) in marks.items()
            if word != self.word(name)
        )

    def _detail(self, *, name: str, topic: str, first: int, rows: int) -> Mapping[str, Any]:
        part = Part(topic=topic, first=first, rows=rows)
        detail = self.collector.group_detail(name, part)
        read: Mapping[str, Any] = json.loads(json.dumps(detail))
        return read


def listed(page: str) -> dict[str, tuple[str, str]]:
    """Return the dot and the word of each group in the list."""
    found = re.findall(
        r'<td><span class="st (\w+)"[^>]*>([^<]+)</span>.*?</td>\s*'
        r'<th scope="row"><a [^>]*>([^<]+)<',
        page,
    )
    return {name: (dot, word) for dot, word, name in found}


@pytest.mark.slow
def test_no_page_calls_a_group_ok_over_a_problem_or_alarms_without_one(
    alice: Client, told: Told, report: Callable[[str], None]
) -> None:
    cluster_rows.cluster()
    play = Play(alice, told)
    wrong: list[str] = []
    changes: dict[str, list[str]] = {name: [] for name in STORIES}
    for second in play.seconds():
        for name, story in STORIES.items():
            word = play.word(name)
            due = max((at for at in story.words if at <= second), default=None)
            if due is not None and word not in story.words[due]:
                wrong.append(f"{second} s: {name} is {word}, not {sorted(story.words[due])}")
            if due is not None and changes[name][-1:] != [word]:
                changes[name].append(word)
        if second % LISTED_EVERY_S == LISTED_EVERY_S - 1:
            wrong += [f"{second} s: {each}" for each in play.disagreements()]
        if second % SHOWN_EVERY_S == SHOWN_EVERY_S - 1:
            pages = {name: play.get("/group", name=name) for name in STORIES}
            for name, page in pages.items():
                card = re.search(r'id="verdict"><div><span class="st (\w+)">([^<]+)</span>', page)
                assert card is not None, page
                assert card[2] == play.word(name)
                if card[1] == "ok" and "does not catch up" in page:
                    wrong.append(f"{second} s: {name} is green and does not catch up")
    for name, page in pages.items():
        wrong += [f"{name} says no {text!r}" for text in STORIES[name].says if text not in page]
    rates = re.search(r"reads ([\d.,]+) records/s while ([\d.,]+) arrive", pages["commits-late"])
    assert rates is not None
    # Not the records that were there before the first commit.
    assert all(10 <= float(rate.replace(",", "")) <= 20 for rate in rates.groups()), rates[0]
    report("; ".join(f"{name}: {' → '.join(each)}" for name, each in changes.items()))
    assert not wrong, "\n".join(wrong[:40])
    often = {name: seen for name, seen in changes.items() if len(seen) - 1 > STORIES[name].changes}
    assert not often
