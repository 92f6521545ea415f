"""Bytes of answers that say more than there is, and texts that are none."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_integration.datasource.wire import messages, primitives
from spark_integration.datasource.wire.errors import BrokerError, WireCorrupt
from spark_integration.datasource.wire.primitives import Reader

READERS = (
    messages.read_api_versions,
    messages.read_metadata,
    messages.read_list_offsets,
    messages.read_fetch,
    messages.read_produce,
    messages.read_init_producer_id,
    messages.read_create_topics,
    messages.read_sasl_handshake,
    messages.read_sasl_authenticate,
)


@given(st.binary(max_size=200), st.sampled_from(READERS))
def test_no_answer_is_read_past_its_end(data: bytes, read: object) -> None:
    assert callable(read)
    with contextlib.suppress(WireCorrupt, BrokerError):
        read(Reader(data))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x7f\xff\xff\xff", "2147483647 items with 0 bytes left"),
        (b"\x00\x00\x00\x02\x00\x05", "5 bytes with 0 bytes left"),
        (b"\x00\x00\x00\x01\x00\x01\xff", "not UTF-8"),
    ],
    ids=["count", "length", "text"],
)
def test_lengths_are_compared_with_what_is_left(data: bytes, said: str) -> None:
    reader = Reader(data)

    with pytest.raises(WireCorrupt, match=said):
        reader.array(reader.string)


def test_a_varint_ends_after_five_bytes() -> None:
    with pytest.raises(WireCorrupt, match="more than five bytes"):
        Reader(b"\xff" * 6).varint()


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_a_varint_comes_back(value: int) -> None:
    assert Reader(primitives.varint(value)).varint() == value
