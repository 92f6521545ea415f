"""The dashboard and the alert rules ask for what is told, and say what to do."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from brokers.server.metrics import ROWS, Kind
from console.monitoring.exposition import METRICS
from console.monitoring.verdicts import Verdict

FOLDER: Final = Path(__file__).parents[3] / "docs" / "monitoring"
METRIC: Final = re.compile(r"samsa_[a-z0-9_]+")
VERDICTS: Final = re.compile(r'verdict[!=~]+"([^"]*)"')
GRID_COLUMNS: Final = 24


def told_names() -> set[str]:
    """Return every name of a series that a broker or the collector tells."""
    names = {metric.name for metric in METRICS}
    for row in ROWS:
        ends = ("_bucket", "_count", "_sum") if row.kind is Kind.HISTOGRAM else ("",)
        names |= {row.name + end for end in ends}
    return names


def alerts() -> list[dict[str, Any]]:
    loaded = yaml.safe_load((FOLDER / "alerts.yml").read_text())
    [group] = loaded["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    return found


def expressions() -> list[str]:
    asked = [target["expr"] for panel in panels() for target in panel["targets"]]
    return [*asked, *(rule["expr"] for rule in alerts())]


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_asks_for_series_and_verdicts_that_exist(expression: str) -> None:
    found = METRIC.findall(expression)

    assert found
    assert set(found) <= told_names()
    for words in VERDICTS.findall(expression):
        assert set(words.split("|")) <= {verdict.value for verdict in Verdict}


def test_there_are_eleven_alerts_that_say_what_to_do() -> None:
    rules = alerts()

    assert len({rule["alert"] for rule in rules}) == len(rules) == 11
    for rule in rules:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert re.fullmatch(r"\d+[mh]", rule["for"])
        assert rule["annotations"]["summary"]
        assert len(rule["annotations"]["description"]) > 40


def test_panels_have_names_of_their_own_and_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= GRID_COLUMNS
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells
    assert len({panel["title"] for panel in panels()}) == len(panels())
