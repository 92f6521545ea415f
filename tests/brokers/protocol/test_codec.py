"""The notation and what is generated from it, on messages made for the purpose."""

import math
from typing import Any

import pytest

from brokers.protocol.codec import codec
from brokers.protocol.errors import DecodeError, EncodeError
from brokers.protocol.messages.fetch import FetchResponse
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from brokers.protocol.schema import (
    INT8,
    INT16,
    INT32,
    STRING,
    UUID,
    Message,
    array,
    blob,
    boolean,
    float64,
    int8,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    uint16,
    uint32,
    uuid,
)

ID = bytes(range(16))


class Point(Message):
    x: int = int8()
    y: int = int8(default=-1, since=1)


class Numbers(Message, versions=(0, 0)):
    flag: bool = boolean()
    tiny: int = int8()
    small: int = int16()
    port: int = uint16()
    medium: int = int32()
    unsigned: int = uint32()
    large: int = int64()
    real: float = float64()
    id: bytes = uuid()


class Growing(Message, versions=(0, 3), flexible=2):
    """Fields that come and go, ignorable and not."""

    always: int = int8()
    early: int = int8(until=1)
    late: str = string(since=1)
    hint: str | None = string(default=None, since=2, nullable=2, ignorable=True)
    point: Point = nested(Point, since=3)


class Nullable(Message, versions=(0, 3), flexible=2):
    text: str | None = string(nullable=1)
    data: bytes | None = blob(nullable=1)
    items: list[int] | None = array(INT32, nullable=1)
    point: Point | None = nested(Point, nullable=0)


class Tagged(Message, versions=(0, 1), flexible=1):
    plain: int = int8()
    name: str | None = string(default=None, since=1, nullable=1, tag=0)
    limit: int = int64(default=10, since=1, tag=1)
    point: Point | None = nested(Point, since=1, tag=2)
    points: list[Point] = array(Point, since=1, tag=5)


class Inner(Message):
    label: str = string(since=1, tag=0)
    value: int = int8()


class Outer(Message, versions=(0, 1), flexible=1):
    """A tagged structure that has a tagged field itself."""

    inner: Inner | None = nested(Inner, since=1, tag=0)
    after: int = int8(since=1, tag=1)


class Arrays(Message, versions=(0, 1), flexible=1):
    shorts: list[int] = array(INT16)
    tinies: list[int] = array(INT8)
    names: list[str] = array(STRING)
    ids: list[bytes] = array(UUID)
    points: list[Point] = array(Point)


class Carrying(Message, versions=(0, 1), flexible=1):
    topic: str = string()
    token: bytes = blob()
    batches: memoryview | None = records(nullable=0)
    partition: int = int32()


def wire(value: Message, version: int) -> bytes:
    return b"".join(codec(type(value), version).encode(value))


def read(message: type[Any], version: int, data: str | bytes | bytearray) -> Any:
    frame = bytes.fromhex(data) if isinstance(data, str) else data
    return codec(message, version).decode(frame)


# -- numbers and versions ------------------------------------------------------------------------


def test_numbers_stand_in_network_order_one_after_the_other() -> None:
    value = Numbers(
        flag=True,
        tiny=-2,
        small=-2,
        port=65_535,
        medium=-2,
        unsigned=2**32 - 1,
        large=-2,
        real=1.5,
        id=ID,
    )

    encoded = wire(value, 0)

    expected = "01 fe fffe ffff fffffffe ffffffff fffffffffffffffe 3ff8000000000000"
    assert encoded == bytes.fromhex(expected) + ID
    assert read(Numbers, 0, encoded) == value


@pytest.mark.parametrize("real", [math.inf, -math.inf, -0.0, 5e-324])
def test_every_float_survives(real: float) -> None:
    # Compared as text: a negative zero equals the positive one.
    assert str(read(Numbers, 0, wire(Numbers(real=real), 0)).real) == str(real)


def test_not_a_number_survives() -> None:
    assert math.isnan(read(Numbers, 0, wire(Numbers(real=math.nan), 0)).real)


def test_any_byte_but_zero_is_true() -> None:
    frame = bytearray(wire(Numbers(), 0))
    frame[0] = 7

    assert read(Numbers, 0, bytes(frame)).flag is True


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tiny", 128),
        ("small", -(2**15) - 1),
        ("port", -1),
        ("unsigned", 2**32),
        ("large", 2**63),
        ("medium", "1"),
        ("medium", None),
        ("id", b"short"),
        ("id", None),
    ],
)
def test_a_value_that_does_not_fit_is_an_encode_error(field: str, value: object) -> None:
    numbers = Numbers()
    setattr(numbers, field, value)

    with pytest.raises(EncodeError):
        wire(numbers, 0)


def test_a_version_carries_its_own_fields_and_the_others_keep_their_defaults() -> None:
    written = {
        0: "0102",
        1: "0102 0001 61",
        2: "01 0261 00 00",
        3: "01 0261 00 0304 00 00",
    }
    values = {
        0: Growing(always=1, early=2),
        1: Growing(always=1, early=2, late="a"),
        2: Growing(always=1, late="a"),
        3: Growing(always=1, late="a", point=Point(x=3, y=4)),
    }

    for version, value in values.items():
        assert wire(value, version) == bytes.fromhex(written[version])
        assert read(Growing, version, written[version]) == value


def test_a_value_the_version_cannot_carry_is_refused_unless_it_may_be_ignored() -> None:
    with pytest.raises(EncodeError, match=r"Growing\.late holds a value, and version 0"):
        wire(Growing(late="a"), 0)
    with pytest.raises(EncodeError, match=r"Growing\.early"):
        wire(Growing(early=1), 2)
    with pytest.raises(EncodeError, match=r"Growing\.point"):
        wire(Growing(point=Point(x=1)), 2)

    assert wire(Growing(hint="dropped"), 0) == wire(Growing(), 0)


def test_a_structure_inside_follows_the_version_of_the_message() -> None:
    assert wire(Arrays(points=[Point(x=1)]), 0).hex() == "00000000" * 4 + "00000001" + "01"
    with pytest.raises(EncodeError, match=r"Arrays\.points\.y"):
        wire(Arrays(points=[Point(y=5)]), 0)


def test_a_version_outside_of_the_range_is_a_bug_of_the_caller() -> None:
    with pytest.raises(AssertionError, match="versions 0-3, not 4"):
        codec(Growing, 4)


# -- null and empty ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "null", "empty"),
    [
        (1, "ffff ffffffff ffffffff ff", "0000 00000000 00000000 01 00ff"),
        (3, "00 00 00 ff 00", "01 01 01 01 00ff 00 00"),
    ],
)
def test_null_and_empty_are_kept_apart(version: int, null: str, empty: str) -> None:
    nothing = Nullable(text=None, data=None, items=None, point=None)
    hollow = Nullable(text="", data=b"", items=[], point=Point())

    assert wire(nothing, version) == bytes.fromhex(null)
    assert wire(hollow, version) == bytes.fromhex(empty)
    assert read(Nullable, version, null) == nothing
    assert read(Nullable, version, empty) == hollow


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ("ffff 00000000 00000000 ff", "text"),
        ("0000 ffffffff 00000000 ff", "data"),
        ("0000 00000000 ffffffff ff", "items"),
    ],
)
def test_null_before_the_version_that_allows_it_is_refused(data: str, field: str) -> None:
    with pytest.raises(DecodeError, match=rf"Nullable\.{field} has length -1, and null is not"):
        read(Nullable, 0, data)
    with pytest.raises(EncodeError):
        wire(Nullable(**{field: None}), 0)


def test_a_negative_length_is_null_where_null_is_legal() -> None:
    """Kafka's own readers take every negative length so."""
    assert read(Nullable, 1, "8000 ffffffff fffffffe 80") == Nullable(
        text=None, data=None, items=None, point=None
    )


# -- tagged fields -------------------------------------------------------------------------------


def test_optional_fields_at_their_default_are_not_written() -> None:
    assert wire(Tagged(plain=1), 1).hex() == "0100"
    assert read(Tagged, 1, "0100") == Tagged(plain=1)


def test_a_structure_of_defaults_is_not_written_and_comes_back_as_absent() -> None:
    encoded = wire(Tagged(plain=1, point=Point()), 1)

    assert encoded.hex() == "0100"
    assert read(Tagged, 1, encoded).point is None


def test_optional_fields_are_written_in_the_order_of_their_tags() -> None:
    value = Tagged(plain=1, name="a", limit=-1, point=Point(x=2), points=[Point(x=3, y=4)])

    encoded = wire(value, 1)

    assert encoded == bytes.fromhex(
        "01 04 00 02 0261 01 08 ffffffffffffffff 02 03 02ff00 05 04 02030400"
    )
    assert read(Tagged, 1, encoded) == value


def test_a_tagged_structure_may_have_a_tagged_field() -> None:
    value = Outer(inner=Inner(label="a", value=7), after=9)

    encoded = wire(value, 1)

    assert encoded == bytes.fromhex("02 00 06 0701 00020261 01 01 09")
    assert read(Outer, 1, encoded) == value


def test_tags_in_any_order_and_tags_nobody_knows_are_read() -> None:
    stranger = "63 02 abcd"
    frame = "01 03 05 04 02030400" + stranger + "00 02 0261"

    assert read(Tagged, 1, frame) == Tagged(plain=1, name="a", points=[Point(x=3, y=4)])


def test_a_section_of_very_many_tags_is_read() -> None:
    many = "01 c801" + "6300" * 200

    assert read(Tagged, 1, many) == Tagged(plain=1)
    assert read(Arrays, 1, "01" * 5 + "c801" + "6300" * 200) == Arrays()


def test_a_tag_that_is_null_on_the_wire_is_null() -> None:
    assert read(Tagged, 1, "01 01 00 01 00") == Tagged(plain=1, name=None)


@pytest.mark.parametrize("size", [7, 9])
def test_a_tag_that_is_not_as_long_as_it_says_is_refused(size: int) -> None:
    frame = bytes.fromhex("0101 01") + bytes([size]) + bytes(8) + b"\0"

    with pytest.raises(DecodeError, match=rf"Tagged\.limit declares {size} bytes and uses 8"):
        read(Tagged, 1, frame)


def test_a_message_of_an_old_version_has_no_tags_and_refuses_to_drop_them() -> None:
    assert wire(Tagged(plain=1), 0).hex() == "01"
    with pytest.raises(EncodeError, match=r"Tagged\.limit"):
        wire(Tagged(plain=1, limit=11), 0)


# -- texts, bytes and arrays ---------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 16_382, 16_383, 32_767])
@pytest.mark.parametrize("version", [1, 3])
def test_texts_of_every_length_survive(length: int, version: int) -> None:
    value = Nullable(text="x" * length, point=None)

    assert read(Nullable, version, wire(value, version)) == value


@pytest.mark.parametrize("version", [1, 3])
def test_a_text_of_more_than_32767_bytes_is_refused(version: int) -> None:
    with pytest.raises(EncodeError):
        wire(Nullable(text="ž" * 16_384), version)


def test_a_compact_text_of_more_than_32767_bytes_is_refused() -> None:
    length = 32_768
    frame = bytes.fromhex("818002") + b"x" * length + bytes.fromhex("0101ff00")

    with pytest.raises(DecodeError, match="length 32768"):
        read(Nullable, 3, frame)


@pytest.mark.parametrize("version", [1, 3])
def test_a_text_that_utf8_cannot_write_is_refused(version: int) -> None:
    with pytest.raises(EncodeError, match="surrogates not allowed"):
        wire(Nullable(text="\ud800"), version)


@pytest.mark.parametrize("bad", ["ff", "c3", "eda080", "c080"])
def test_a_text_that_is_not_utf8_is_refused(bad: str) -> None:
    text = bytes.fromhex(bad)
    frame = len(text).to_bytes(2, "big") + text + bytes.fromhex("00000000 00000000 ff")

    with pytest.raises(DecodeError, match="Nullable v1: a string is not UTF-8"):
        read(Nullable, 1, frame)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 200])
def test_arrays_of_every_kind_survive(version: int, count: int) -> None:
    value = Arrays(
        shorts=list(range(count)),
        tinies=[-1] * count,
        names=["ž" * index for index in range(count)],
        ids=[ID] * count,
        points=[Point(x=index % 100, y=version - 1) for index in range(count)],
    )

    assert read(Arrays, version, wire(value, version)) == value


def test_a_uuid_in_an_array_has_16_bytes() -> None:
    with pytest.raises(EncodeError, match=r"Arrays\.ids is b'abc', and a uuid is 16 bytes"):
        wire(Arrays(ids=[ID, b"abc"]), 0)


def test_none_has_no_place_in_an_array() -> None:
    nothing: Any = None

    with pytest.raises(EncodeError):
        wire(Arrays(names=["a", nothing]), 0)
    with pytest.raises(EncodeError):
        wire(Arrays(points=[nothing]), 1)


def test_a_count_is_compared_with_the_bytes_left_before_anything_is_made() -> None:
    with pytest.raises(DecodeError, match=r"Arrays\.shorts has length 2147483647, and 6 bytes"):
        read(Arrays, 0, "7fffffff 000000000000")


def test_bytes_after_the_message_are_refused() -> None:
    with pytest.raises(DecodeError, match="1 bytes are left over"):
        read(Arrays, 1, "01" * 5 + "00" + "00")


def test_an_empty_frame_is_refused() -> None:
    with pytest.raises(DecodeError, match="ends after 0 bytes"):
        read(Numbers, 0, b"")


# -- record data ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_record_data_leaves_as_the_very_object_that_was_given(version: int, kind: Any) -> None:
    batches = kind(b"batches")

    buffers = codec(Carrying, version).encode(Carrying(topic="t", batches=batches, partition=1))

    assert any(buffer is batches for buffer in buffers)
    assert len(buffers) == 3


def test_record_data_may_be_anything_that_has_a_length() -> None:
    """A range of a file that the kernel will send."""
    file_range: Any = range(1_000)

    head, body, tail = codec(Carrying, 1).encode(Carrying(topic="t", batches=file_range))

    assert head == bytes.fromhex("0274 01 e907")
    assert body is file_range
    assert tail == bytes.fromhex("00000000 00")


@pytest.mark.parametrize("version", [0, 1])
def test_null_and_empty_record_data_are_kept_apart(version: int) -> None:
    null = Carrying(batches=None)
    empty = Carrying(batches=memoryview(b""))

    assert wire(null, version) != wire(empty, version)
    assert read(Carrying, version, wire(null, version)).batches is None
    assert read(Carrying, version, wire(empty, version)).batches == b""


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_record_data_is_read_as_a_view_of_the_frame(kind: Any) -> None:
    frame = kind(wire(Carrying(topic="t", token=b"k", batches=memoryview(b"batches")), 1))

    value = codec(Carrying, 1).decode(frame)

    assert isinstance(value.batches, memoryview)
    assert value.batches.obj is memoryview(frame).obj
    assert bytes(value.batches) == b"batches"


def test_what_is_written_to_the_frame_shows_in_the_record_data() -> None:
    """The broker patches offsets in place, so there must be no copy between."""
    frame = bytearray(wire(Carrying(batches=memoryview(b"batches")), 1))
    value = read(Carrying, 1, frame)

    frame[frame.index(b"batches")] = ord("B")

    assert value.batches == b"Batches"


def test_texts_and_bytes_beside_record_data_are_copies() -> None:
    frame = bytearray(wire(Carrying(topic="topic", token=b"token"), 1))
    value = codec(Carrying, 1).decode(memoryview(frame))

    frame[:] = bytes(len(frame))

    assert (value.topic, value.token) == ("topic", b"token")
    assert type(value.token) is bytes


def test_a_message_without_record_data_does_not_hold_its_frame() -> None:
    frame = bytearray(wire(Arrays(names=["a"], ids=[ID]), 1))

    value = codec(Arrays, 1).decode(memoryview(frame))

    frame.clear()  # a BufferError, if a view of it were left
    assert value == Arrays(names=["a"], ids=[ID])


def test_a_produce_request_is_split_around_every_batch() -> None:
    batches = [memoryview(b"first"), memoryview(b"second")]
    data = [PartitionProduceData(index=i, records=each) for i, each in enumerate(batches)]
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=data)])

    buffers = codec(ProduceRequest, 9).encode(request)

    assert [buffer for buffer in buffers if isinstance(buffer, memoryview)] == batches
    assert len(buffers) == 5


# -- classes and codecs --------------------------------------------------------------------------


def test_a_codec_is_made_once() -> None:
    assert codec(FetchResponse, 12) is codec(FetchResponse, 12)
    assert codec(FetchResponse, 12) is not codec(FetchResponse, 13)


def test_values_are_compared_and_printed_by_their_fields() -> None:
    assert Point(x=1) == Point(1, -1)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Inner()
    assert repr(Point(x=1)) == "Point(x=1, y=-1)"


def test_a_copy_is_another_object_with_the_same_values() -> None:
    first = Arrays(points=[Point(x=1)])
    second = first.copy()

    second.names = ["a"]

    assert second.points is first.points
    assert first == Arrays(points=[Point(x=1)])


def test_mutable_defaults_are_fresh_for_every_value() -> None:
    first, second = Growing(), Growing()

    first.point.x = 5

    assert second.point == Point()
    assert Arrays().points is not Arrays().points


def test_a_decoded_message_owns_its_defaults() -> None:
    first, second = (read(Growing, 0, "0102") for _ in range(2))

    first.point.x = 5

    assert second.point == Point()


def test_a_misspelt_field_is_an_error() -> None:
    with pytest.raises(TypeError, match="z"):
        Point(z=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Point().z = 1  # type: ignore[attr-defined]


def test_messages_are_mutable_and_therefore_no_keys() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point())
