"""Compresses large answers of views with gzip, for programs that accept it.

Runs in threads: the event loop compresses nothing. Records and streams are served beside the views,
and stay plain.
"""

import zlib
from typing import Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.text import compress_string
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.access.callers import Caller, CallerKind

# A smaller answer takes a packet or three, compressed or not.
MIN_BYTES: Final = 4_096
# The length of an answer says less about its text, as Django's own middleware does it.
MAX_RANDOM_BYTES: Final = 100
# Window bits of zlib, plus its sign for the format gzip.
GZIP_FORMAT: Final = zlib.MAX_WBITS | 16
GZIP: Final = frozenset({"gzip", "x-gzip", "*"})


def is_wanted(request: HttpRequest | Request, caller: Caller) -> bool:
    """Tell whether an answer may be compressed.

    Not for a session: another site can make its browser call, with text of its own, and might see
    how long the answer is. A token or password is sent by the program that reads the answer.
    """
    return (
        request.method == "GET"
        and caller.kind is not CallerKind.SESSION
        and accepts_gzip(request.META.get("HTTP_ACCEPT_ENCODING", ""))
    )


def accepts_gzip(header: str) -> bool:
    """Tell whether Accept-Encoding names gzip, and not with the weight 0."""
    for each in header.lower().split(","):
        name, _, weight = each.partition(";")
        if name.strip() in GZIP:
            return not weight or weight.replace(" ", "").removeprefix("q=").strip("0.") != ""
    return False


def compress(answer: Response) -> None:
    """Compress a rendered answer, if it is large and becomes smaller."""
    if answer.status_code != 200 or len(answer.content) < MIN_BYTES:
        return
    packed = compress_string(answer.content, max_random_bytes=MAX_RANDOM_BYTES)
    if len(packed) < len(answer.content):
        answer.content = packed
        mark(answer)


class Packer:
    """Compresses an answer in pieces: one member of gzip, since curl reads no more than that."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(wbits=GZIP_FORMAT)

    def packed(self, piece: bytes, *, is_last: bool = False) -> bytes:
        """Return what is ready, which may be nothing."""
        ready = self._packer.compress(piece)
        return ready + self._packer.flush() if is_last else ready


def mark(answer: HttpResponseBase) -> None:
    answer["Content-Encoding"] = "gzip"
    patch_vary_headers(answer, ("Accept-Encoding",))
