"""The config of Confluent's sink is taken, and what is not honoured is refused by its name."""

import pytest

from connectors.plugins.s3.connector import S3Sink
from connectors.sdk import columns
from connectors.sdk.checks import check
from tests.connectors.plugins.s3.bucket import parsed

PUBLISHED = {
    "s3.region": "us-west-2",
    "s3.bucket.name": "confluent-kafka-connect-s3-testing",
    "s3.part.size": "5242880",
    "flush.size": "3",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
    "schema.compatibility": "NONE",
    "aws.access.key.id": "AKIDTEST",
    "aws.secret.access.key": "geheim",
}


def errors(**more: str) -> dict[str, str]:
    """Return what is wrong with the published config, changed like this, by key."""
    config = {**PUBLISHED, **{name.replace("_", "."): value for name, value in more.items()}}
    found = parsed(config)
    wrong = {key.name: check(key, found[key.name]) for key in S3Sink.definition()}
    wrong |= {value.name: value.errors[0] for value in S3Sink().validate(found)}
    wrong |= {name: S3Sink.refused[name] for name in config if name in S3Sink.refused}
    return {name: text for name, text in wrong.items() if text is not None}


def test_a_published_config_is_taken_as_it_is() -> None:
    assert errors() == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("s3.credentials.provider.class", "com.evil.Provider"),
        ("s3.proxy.url", "http://proxy:80"),
        ("s3.wan.mode", "true"),
        ("store.kafka.keys", "true"),
        ("keys.format.class", "io.confluent.connect.s3.format.avro.AvroFormat"),
        ("schema.compatibility", "BACKWARD"),
        ("format.class", "io.confluent.connect.s3.format.avro.AvroFormat"),
        ("timestamp.extractor", "Wallclock"),
        ("topics.dir", "../elsewhere"),
        ("s3.bucket.name", "Not A Bucket"),
        ("s3.region", "us west"),
        ("store.url", "ftp://host"),
        ("store.url", "http://host/path"),
        ("flush.size", "0"),
        ("s3.part.size", "5"),
        ("timezone", "Europe/Nowhere"),
        ("path.format", "EEE"),
    ],
)
def test_what_is_not_honoured_is_refused_by_its_name(key: str, value: str) -> None:
    assert list(errors(**{key.replace(".", "_"): value})) == [key]


@pytest.mark.parametrize(
    ("partitioner", "keys"),
    [
        ("FieldPartitioner", ["partition.field.name"]),
        ("TimeBasedPartitioner", ["path.format", "partition.duration.ms"]),
        ("DailyPartitioner", []),
        ("HourlyPartitioner", []),
    ],
)
def test_a_partitioner_says_what_it_needs(partitioner: str, keys: list[str]) -> None:
    named = f"io.confluent.connect.storage.partitioner.{partitioner}"

    assert list(errors(partitioner_class=named)) == keys


def test_parquet_without_its_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "is_here", lambda: False)

    assert "./samsa extras install parquet" in errors(format_class="parquet")["format.class"]
