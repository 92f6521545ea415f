"""What a reader that asks for too many partitions is told to do."""

import pytest

from gateway.kafka.topic_pattern import TopicPattern
from gateway.rest.codes import ApiError
from gateway.rest.records.question import MAX_PARTITIONS, question_of


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        (None, "name some with partition=0,1,2"),
        ("ord.*", "give a pattern that matches fewer topics"),
    ],
)
def test_too_many_partitions_are_refused_with_what_helps(pattern: str | None, advice: str) -> None:
    question = question_of(
        () if pattern else ("orders",),
        {},
        is_stream=True,
        pattern=None if pattern is None else TopicPattern(pattern),
    )
    with pytest.raises(ApiError, match=f"{MAX_PARTITIONS} can be read at the same time: {advice}"):
        question.starts({"orders": range(MAX_PARTITIONS + 1)})
