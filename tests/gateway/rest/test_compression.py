"""Large answers of views, compressed for programs that accept it."""

import gzip
import zlib

import pytest
from django.http import HttpRequest
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.rest import compression
from gateway.rest.compression import MIN_BYTES
from tests.fakes.rest_door import WRITER

PAGE = Caller(kind=CallerKind.SESSION, name="ann", rights=Rights())


def asked(method: str = "GET", accepted: str = "gzip") -> HttpRequest:
    request = HttpRequest()
    request.method = method
    request.META["HTTP_ACCEPT_ENCODING"] = accepted
    return request


def rendered(value: object, status: int = 200) -> Response:
    answer = Response(value, status=status)
    answer.accepted_renderer = JSONRenderer()
    answer.accepted_media_type = "application/json"
    answer.__dict__["renderer_context"] = {}
    answer.add_post_render_callback(compression.compress)
    answer.render()
    return answer


@pytest.mark.parametrize(
    ("accepted", "is_wanted"),
    [
        ("gzip", True),
        ("gzip, deflate, br", True),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", True),
        ("*", True),
        ("", False),
        ("br", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
    ],
)
def test_only_a_program_that_accepts_gzip_gets_it(accepted: str, *, is_wanted: bool) -> None:
    assert compression.is_wanted(asked(accepted=accepted), WRITER) == is_wanted
    # The length of an answer may tell another site what is in it.
    assert not compression.is_wanted(asked(accepted=accepted), PAGE)
    assert not compression.is_wanted(asked("HEAD", accepted), WRITER)


def test_a_large_list_is_compressed_and_a_small_one_is_not() -> None:
    names = [f"orders-{number}" for number in range(MIN_BYTES // 10)]

    large, small, failed = rendered(names), rendered(names[:9]), rendered(names, status=400)

    assert large["Content-Encoding"] == "gzip"
    assert large["Vary"] == "Accept-Encoding"
    assert len(large.content) < MIN_BYTES // 2
    assert gzip.decompress(large.content).startswith(b'["orders-0","orders-1"')
    for answer in (small, failed):
        assert "Content-Encoding" not in answer
        assert answer.content.startswith(b'["orders-0"')


def test_an_answer_in_pieces_is_one_member_of_gzip() -> None:
    packer, reader = compression.Packer(), zlib.decompressobj(compression.GZIP_FORMAT)

    packed = packer.packed(b"[1") + packer.packed(b",2") + packer.packed(b"]", is_last=True)

    assert reader.decompress(packed) == b"[1,2]"
    assert reader.eof
    assert reader.unused_data == b""
