"""Options by the names of Spark's own source, and what is wrong with others."""

import pytest

from spark_integration.datasource.errors import OptionRefused
from spark_integration.datasource.options import Choice, Mark, SourceOptions, parse_options
from spark_integration.datasource.wire.messages import EARLIEST, LATEST, TopicPartition

HERE = {"kafka.bootstrap.servers": "a:9092", "subscribe": "t, u,t"}


def parsed(**options: str) -> SourceOptions:
    return parse_options(HERE | options, is_stream=False)


def parsed_stream(**options: str) -> SourceOptions:
    return parse_options(HERE | options, is_stream=True)


def test_defaults_are_those_of_sparks_own_source() -> None:
    batch, stream = parsed(), parsed_stream()

    assert batch.selection.topics == ("t", "u")
    assert (batch.starting.value, batch.ending.value, stream.starting.value) == (
        EARLIEST,
        LATEST,
        LATEST,
    )
    assert batch.fails_on_loss
    assert not batch.has_headers
    assert not batch.is_committed
    assert (batch.patience_seconds, batch.max_trigger_delay_ms) == (120, 900_000)


def test_names_have_no_case() -> None:
    options = {"KAFKA.bootstrap.servers": "a:1", "SUBSCRIBE": "t", "FailOnDataLoss": "FALSE"}

    assert not parse_options(options, is_stream=False).fails_on_loss


def test_of_several_starts_the_time_of_all_counts_first() -> None:
    by_time = '{"t": {"0": 5}, "u": {"1": 7}}'
    offsets = {"startingOffsets": '{"t": {"0": 5}}'}

    both = parsed(startingOffsetsByTimestamp=by_time, **offsets)
    all_three = parsed(startingOffsetsByTimestamp=by_time, startingTimestamp="9", **offsets)

    assert both.starting.mark is Mark.TIMES
    assert both.starting.values == {TopicPartition("t", 0): 5, TopicPartition("u", 1): 7}
    assert (all_three.starting.mark, all_three.starting.value) == (Mark.TIME, 9)


def test_partitions_are_assigned_by_json() -> None:
    options = {"kafka.bootstrap.servers": "a:1", "assign": '{"t": [0, 3]}'}

    selection = parse_options(options, is_stream=True).selection

    assert selection.choice is Choice.ASSIGN
    assert selection.partitions == (TopicPartition("t", 0), TopicPartition("t", 3))


def test_a_stream_may_be_limited_by_rows_bytes_and_time() -> None:
    options = parsed_stream(
        maxOffsetsPerTrigger="100",
        minOffsetsPerTrigger="10",
        maxBytesPerTrigger="1000",
        maxTriggerDelay="2m",
        queryId="q",
    )

    assert (options.max_offsets_per_trigger, options.min_offsets_per_trigger) == (100, 10)
    assert (options.max_bytes_per_trigger, options.max_trigger_delay_ms) == (1000, 120_000)
    assert options.query_id == "q"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"startingOffset": "earliest"},
            "unknown option startingoffset|did you mean startingOffsets",
        ),
        ({"assign": '{"t": [0]}'}, "subscribe and assign came|assign and subscribe came"),
        ({"startingOffsets": "latest"}, "startingOffsets cannot be latest"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, "startingOffsets cannot be latest"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest"),
        ({"startingOffsets": "0"}, "startingOffsets is '0': give"),
        (
            {"startingOffsets": "newest"},
            'startingOffsets is \'newest\': give earliest, latest or {"topic": {"0": 23}}',
        ),
        ({"startingOffsetsByTimestamp": "x"}, "is 'x': give {\"topic\""),
        ({"startingOffsets": '{"t": [0]}'}, "startingOffsets is '{\"t\": \\[0\\]}': give"),
        ({"startingTimestamp": "-5"}, "startingTimestamp is '-5'"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss is 'no': give true or false"),
        ({"minPartitions": "0"}, "minPartitions is 0"),
        ({"maxTriggerDelay": "1 fortnight"}, "maxTriggerDelay is '1 fortnight'"),
        ({"kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset cannot be set"),
        ({"kafka.isolation.level": "dirty"}, "kafka.isolation.level is 'dirty'"),
        ({"kafka.bootstrap.servers": "nowhere"}, "has 'nowhere': give host:port"),
        ({"subscribe": ","}, "subscribe names no topic"),
        (
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"},
            "minOffsetsPerTrigger is 9, above",
        ),
    ],
)
def test_a_wrong_option_is_named_with_what_to_give(options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionRefused, match=said):
        parsed(**options)


def test_a_stream_has_no_end() -> None:
    with pytest.raises(OptionRefused, match=r"endingOffsets is for spark\.read"):
        parsed_stream(endingOffsets="latest")


def test_topics_may_be_meant_by_their_ids() -> None:
    options = parsed(topicIds='{"t": "AAAAAAAAAAAAAAAAAAAAAQ"}')

    assert options.topic_ids == {"t": bytes(15) + b"\x01"}


@pytest.mark.parametrize("text", ['{"t": "AAAA"}', '{"t": 7}', "[]", "{"])
def test_an_id_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(OptionRefused, match="topicIds is"):
        parsed(topicIds=text)


def test_a_stream_takes_no_ids() -> None:
    with pytest.raises(OptionRefused, match=r"topicIds is for spark\.read"):
        parsed_stream(topicIds='{"t": "AAAAAAAAAAAAAAAAAAAAAQ"}')


def test_an_expression_that_is_none_is_named() -> None:
    options = {"kafka.bootstrap.servers": "a:1", "subscribePattern": "(a"}

    with pytest.raises(OptionRefused, match="'\\(a' is not a valid regex"):
        parse_options(options, is_stream=False)
