"""Our answers next to those that a worker of Kafka Connect 4.3 gave to the same story.

`connect_answers` has recorded them from its Java classes. What differs stands in the table below,
with the reason; a row that nothing needs any more fails.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.connectors.rest.connect_answers import FILE, Story
from tests.connectors.rest.connect_story import Step
from tests.gateway.rest.asking import Api

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Steps that fit a pattern are answered otherwise. `count` is how many of them there are."""

    step: str
    why: str
    count: int = 1


MISTAKE: Final = "a mistake of the caller is a 400 that says what to send, not a 500 of a parser"
DIFFERENCES: Final = (
    Difference(step=r"GET / null", why="the commit is a word for this project"),
    Difference(step=r"scope=cluster", why="levels are of one process, and no other one hears"),
    Difference(step=r"POST /connectors ({\"name\": \"a\"}|{}|\[\])", why=MISTAKE, count=3),
    Difference(step=r"POST /connectors .*(\"bogus\"|\"NOPE\")", why=MISTAKE, count=2),
    Difference(step=r"GET /connectors/nope/topics", why="no topics of a connector that is not"),
    Difference(step=r"PUT /connectors/a/config \[\]", why=MISTAKE),
    Difference(
        step=r"\"batch.size\": \"x\"", why="the file source checks its batch size, too", count=2
    ),
    Difference(
        step=r"PATCH /connectors/a/offsets .*(\"z\"|-1|\"offsets\": 5)", why=MISTAKE, count=3
    ),
    Difference(
        step=r"PATCH /connectors/a/offsets .*\"foo\"",
        why="the file source does not look at the names of places; such an offset is of no use",
    ),
    Difference(step=r"GET /connectors/a/offsets", why="that offset"),
    Difference(
        step=r"FileStreamS\w+/config/validate .*\"file\": \"\w+.txt\", \"name\": \"x\"}$",
        why="a file is named, since there is no standard input; bytes can be read and written;"
        " and dead letters have the cluster's replication factor where none is named",
        count=2,
    ),
    Difference(
        step=r"topic.replication.factor\": \"x\"",
        why="dead letters have the cluster's replication factor where none is named",
    ),
    Difference(step=r"validate .*\"batch.size\": {", why=MISTAKE),
    Difference(
        step=r"producer.override",
        why="an allowlist in the place of all configs of a client, which could lead it elsewhere",
        count=2,
    ),
    Difference(
        step=r"validate .*(InsertField\$Key|SetSchemaMetadata\$Value)\"",
        why="what no task could make is refused here, and fails its task there",
        count=2,
    ),
    Difference(
        step=r"validate .*\"unknown.key\"",
        why="a key without effect has an entry with a warning, as one with an error has there",
    ),
    Difference(step=r"validate {\"tasks.max\": \"1\"}", why=MISTAKE),
    Difference(step=r"/connector-plugins/nope/config/validate", why=MISTAKE),
)


def test_answers_are_those_of_kafka_connect_but_for_the_table(connect: Api, report: Any) -> None:
    def ask(step: Step) -> tuple[int, str, Any]:
        answer = connect(*step)
        told = answer.json() if answer.content else None
        return answer.status_code, answer.headers.get("Location", ""), told

    ours = json.loads(json.dumps(Story(ask=ask).answers()))
    theirs = json.loads(FILE.read_text(encoding="utf-8"))

    assert [one[:3] for one in ours] == [one[:3] for one in theirs]
    used = dict.fromkeys(DIFFERENCES, 0)
    unexplained = []
    for one, other in zip(ours, theirs, strict=True):
        if one == other:
            continue
        step = f"{one[0]} {one[1]} {json.dumps(one[2])}"
        row = next((row for row in DIFFERENCES if re.search(row.step, step)), None)
        if row is None:
            unexplained.append((step, one[3:], other[3:]))
        else:
            used[row] += 1
    assert unexplained == []
    assert {row.step: count for row, count in used.items()} == {
        row.step: row.count for row in DIFFERENCES
    }
    differing = sum(used.values())
    report(f"{len(ours)} answers, {len(ours) - differing} equal, {differing} in the table")
