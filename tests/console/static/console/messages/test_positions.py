"""Where a stream has come to: another one goes on there, with nothing lost and nothing twice."""

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
    gap = {"type": "gap", "partition": 12, "from": "0", "to": "7"}

    assert cursor(START, record, gap) == "0:9007199254740994,12:7"


def test_progress_counts_what_a_filter_left_out_and_never_goes_back() -> None:
    progress = [
        {"type": "progress", "partitions": [[0, "90", "99", 1, 1], [12, "3", "9", 1, 1]]},
        {"type": "progress", "partitions": [[0, "10", "99", 1, 1]]},
    ]

    assert cursor(START, *progress) == "0:90,12:3"
