"""Where a stream has come to: another one goes on there, with nothing lost and nothing twice."""

import pytest

from tests.extras import requires
from tests.node import evaluated

pytestmark = requires("node")

START = {
    "type": "start",
    "partitions": [{"partition": 0, "from": "5"}, {"partition": 12, "from": "0"}],
}


def cursor(*frames: object) -> str:
    expression = """(() => {
      const positions = new m.Positions();
      given.forEach((frame) => positions.take(frame));
      return positions.cursor();
    })()"""
    return str(evaluated("messages/positions.js", expression, list(frames)))


def test_a_stream_that_told_nothing_else_begins_where_it_began() -> None:
    assert cursor(START) == "0:5,12:0"


def test_it_goes_on_behind_the_last_record_and_behind_gaps() -> None:
    record = {"type": "record", "partition": 0, "offset": "9007199254740993"}
    gap = {"type": "gap", "partition": 12, "from": "0", "to": "7", "next": "7"}

    assert cursor(START, record, gap) == "0:9007199254740994,12:7"


def test_progress_counts_what_a_filter_left_out() -> None:
    progress = [
        {"type": "progress", "partitions": [[0, "90", "99", 1, 1], [12, "3", "9", 1, 1]]},
        {"type": "progress", "partitions": [[0, "95", "99", 1, 1]]},
    ]

    assert cursor(START, *progress) == "0:95,12:3"


@pytest.mark.parametrize(
    "line",
    [
        {"type": "start", "partitions": [{"partition": 0, "from": "3"}]},
        {"type": "record", "partition": 0, "offset": "2"},
        {"type": "gap", "partition": 0, "from": "3", "to": "90", "next": "3"},
        {"type": "progress", "partitions": [[0, "3", "9", 1, 1]]},
    ],
)
def test_a_log_that_was_cut_or_created_again_is_followed_from_its_lower_offsets(
    line: dict[str, object],
) -> None:
    record = {"type": "record", "partition": 0, "offset": "89"}

    assert cursor(START, record, line) == "0:3,12:0"
