"""The stored first offsets of a stream, in the format of the first release."""

from pathlib import Path

import pytest

from spark_integration.datasource.errors import SamsaError
from spark_integration.datasource.initial_offsets import Beginning, decoded, encoded, stream_name
from spark_integration.datasource.wire.messages import TopicPartition

FIRST = (
    b'{"version": 1, "offsets": {"t": {"0": 7, "10": 9}},'
    b' "topics": {"t": "000102030405060708090a0b0c0d0e0f"}}'
)
BEGINNING = Beginning(
    offsets={TopicPartition("t", 0): 7, TopicPartition("t", 10): 9},
    topic_ids={"t": bytes(range(16))},
)


def test_the_form_of_the_first_release_is_read_and_written() -> None:
    assert decoded(FIRST, "q") == BEGINNING
    assert encoded(BEGINNING) == FIRST


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (FIRST.replace(b"1", b"2", 1), "format 2, and this release reads format 1"),
        (b"[]", "that Samsa did not write"),
        (b"\xff", "that Samsa did not write"),
        (b'{"version": 1}', "that Samsa did not write"),
    ],
)
def test_offsets_of_another_program_are_named(value: bytes, said: str) -> None:
    with pytest.raises(SamsaError, match=said):
        decoded(value, "q")


def test_a_name_is_the_users_or_that_of_the_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id": "x"}', encoding="utf-8")

    assert stream_name(query_id="q", checkpoint=str(tmp_path)) == "q"
    assert stream_name(query_id="", checkpoint=str(tmp_path)) == f"{tmp_path}#x"
    assert stream_name(query_id="", checkpoint=tmp_path.as_uri()) == f"{tmp_path}#x"
    assert stream_name(query_id="", checkpoint=f"{tmp_path}/") == f"{tmp_path}#x"
    assert stream_name(query_id="", checkpoint="s3://bucket/a") == "s3://bucket/a#"
    assert stream_name(query_id="", checkpoint=str(tmp_path / "none")).endswith("none#")
    assert stream_name(query_id="", checkpoint="") == ""
