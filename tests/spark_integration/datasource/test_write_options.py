"""A write that cannot be done is refused before anything is sent, by the name of what is wrong."""

import pytest

from spark_integration.datasource.errors import OptionRefused
from spark_integration.datasource.wire.settings import SettingRefused
from spark_integration.datasource.write_options import (
    BATCH_BYTES,
    BUFFER_BYTES,
    plan_write,
)

BOOTSTRAP = {"kafka.bootstrap.servers": "broker:9092"}
COLUMNS = {"value": "binary"}


def test_defaults_are_those_of_kafkas_producer() -> None:
    plan = plan_write({**BOOTSTRAP, "topic": "t"}, COLUMNS, overwrite=False)

    assert plan.topic == "t"
    assert plan.codec == 0
    assert (plan.batch_bytes, plan.buffer_bytes) == (BATCH_BYTES, BUFFER_BYTES)
    assert plan.settings.bootstrap == (("broker", 9092),)


def test_names_of_options_have_no_case_and_those_of_others_no_meaning() -> None:
    options = {
        "KAFKA.Bootstrap.Servers": "broker:9092",
        "Topic": "t",
        "kafka.Compression.Type": "ZSTD",
        "kafka.batch.size": "1000",
        "checkpointlocation": "/x",
        "exactlyOnce": "false",
        "kafka.acks": "all",
    }

    plan = plan_write(options, {**COLUMNS, "offset": "bigint"}, overwrite=False)

    assert (plan.topic, plan.codec, plan.batch_bytes) == ("t", 4, 1000)
    assert plan.columns == {"value"}


@pytest.mark.parametrize(
    ("options", "columns", "told"),
    [
        ({"exactlyOnce": "true"}, {}, "exactlyOnce is true, which needs transactions"),
        ({"kafka.acks": "1"}, {}, "kafka.acks is '1', which can only be all"),
        ({"kafka.enable.idempotence": "false"}, {}, "can only be true"),
        ({"kafka.transactional.id": "x"}, {}, "kafka.transactional.id is not supported"),
        ({"kafka.partitioner.class": "x"}, {}, "give a column partition"),
        ({"kafka.compression.type": "brotli"}, {}, "'brotli': give one of none, gzip"),
        ({"kafka.batch.size": "0"}, {}, "kafka.batch.size is '0': give a number from 1"),
        ({"kafka.buffer.memory": "many"}, {}, "kafka.buffer.memory is 'many'"),
        ({"kafka.bootstrap.servers": ""}, {}, "kafka.bootstrap.servers is missing"),
        ({"topic": ""}, {}, "no topic to write to"),
        ({}, {"value": "int"}, "the column value is of type int: cast it to binary or string"),
        ({}, {"partition": "bigint"}, "the column partition is of type bigint: cast it to int"),
        ({}, {"headers": "map<string,binary>"}, "array<struct<key:string,value:binary>>"),
    ],
)
def test_unsupported_option_is_refused(
    options: dict[str, str], columns: dict[str, str], told: str
) -> None:
    with pytest.raises((OptionRefused, SettingRefused)) as caught:
        plan_write({**BOOTSTRAP, "topic": "t", **options}, {**COLUMNS, **columns}, overwrite=False)

    assert told in str(caught.value)


def test_rows_without_a_value_are_refused() -> None:
    with pytest.raises(OptionRefused, match="a, b have no column value"):
        plan_write({**BOOTSTRAP, "topic": "t"}, {"a": "int", "b": "int"}, overwrite=False)


def test_a_topic_is_never_written_over() -> None:
    with pytest.raises(OptionRefused, match="append"):
        plan_write({**BOOTSTRAP, "topic": "t"}, COLUMNS, overwrite=True)


def test_rows_may_name_their_topics() -> None:
    plan = plan_write(BOOTSTRAP, {**COLUMNS, "topic": "string"}, overwrite=False)

    assert plan.topic is None
