"""Request headers of every form, response headers, and what is refused."""

import struct

import pytest

from brokers.protocol.apis import APIS
from brokers.protocol.errors import DecodeError
from brokers.protocol.headers import read_request, response_head


def head(key: int, version: int, client_id: bytes | None = b"cli", tail: bytes = b"") -> memoryview:
    length = -1 if client_id is None else len(client_id)
    return memoryview(struct.pack(">hhih", key, version, 77, length) + (client_id or b"") + tail)


def test_a_plain_header_ends_behind_the_client_id() -> None:
    request = read_request(head(3, 8, tail=b"body"), APIS, 5)

    assert (request.api.name, request.version, request.correlation_id) == ("Metadata", 8, 77)
    assert request.client_id == "cli"
    assert bytes(request.body) == b"body"
    assert request.place == 5


def test_a_flexible_header_ends_behind_its_tags_and_keeps_the_short_client_id() -> None:
    request = read_request(head(3, 9, tail=b"\x00body"), APIS, 0)

    assert request.client_id == "cli"
    assert bytes(request.body) == b"body"


def test_unknown_tags_in_a_header_are_skipped() -> None:
    request = read_request(head(3, 9, tail=b"\x02\x00\x01a\x09\x02bcBODY"), APIS, 0)

    assert bytes(request.body) == b"BODY"


def test_a_null_client_id_is_not_an_empty_one() -> None:
    assert read_request(head(3, 8, None), APIS, 0).client_id is None
    assert read_request(head(3, 8, b""), APIS, 0).client_id == ""


@pytest.mark.parametrize("version", [5, 6, 32767])
def test_api_versions_passes_in_any_version_so_that_it_can_be_answered(version: int) -> None:
    """KIP-511: the answer to a version from the future names the versions that would do."""
    assert read_request(head(18, version, tail=b"\x00"), APIS, 0).version == version


@pytest.mark.parametrize(
    ("key", "version"), [(3, 14), (3, -1), (0, 2), (18, -1), (4, 0), (999, 0), (-1, 0), (52, 0)]
)
def test_an_unknown_api_or_version_closes_the_connection(key: int, version: int) -> None:
    with pytest.raises(DecodeError):
        read_request(head(key, version), APIS, 0)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x00",
        struct.pack(">hhi", 3, 8, 1),
        struct.pack(">hhih", 3, 8, 1, 5) + b"four",
        struct.pack(">hhih", 3, 8, 1, 32767),
        struct.pack(">hhih", 3, 8, 1, 2) + b"\xff\xfe",
        struct.pack(">hhih", 3, 9, 1, -1),
        struct.pack(">hhih", 3, 9, 1, -1) + b"\x01",
        struct.pack(">hhih", 3, 9, 1, -1) + b"\x01\x00\x7f",
        struct.pack(">hhih", 3, 9, 1, -1) + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        struct.pack(">hhih", 3, 9, 1, -1) + b"\xff\xff\xff\xff\x0f",
    ],
)
def test_a_header_that_cannot_be_parsed_is_a_typed_error(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        read_request(memoryview(frame), APIS, 0)


def test_a_response_header_has_tags_in_flexible_versions_only() -> None:
    assert response_head(APIS[3], 8, 77, 100) == struct.pack(">ii", 104, 77)
    assert response_head(APIS[3], 9, 77, 100) == struct.pack(">iib", 105, 77, 0)


@pytest.mark.parametrize("version", [0, 2, 3, 4, 9])
def test_the_api_versions_response_never_has_tags(version: int) -> None:
    assert response_head(APIS[18], version, 77, 100) == struct.pack(">ii", 104, 77)
