"""Returns the codec of a message in one version; generated on first use and kept.

`codec(FetchRequest, 12).decode(view)` and `.encode(message)` are the whole interface. Decoders take
exactly one message's bytes and refuse trailing bytes; encoders return a list of buffers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from brokers.protocol.decoding import generate_decoder
from brokers.protocol.encoding import generate_encoder
from brokers.protocol.schema import Message

M = TypeVar("M", bound=Message)


@dataclass(slots=True)
class Codec(Generic[M]):
    """Two functions, each generated on its first call: a broker never encodes requests."""

    message: type[M]
    version: int
    decode: Callable[[bytes | bytearray | memoryview], M]
    encode: Callable[[M], list[Any]]


_CODECS: dict[tuple[type[Message], int], Codec[Any]] = {}


def codec(message: type[M], version: int) -> Codec[M]:
    """Return the codec of `message` in `version`; the caller has checked the version's range."""
    found = _CODECS.get((message, version))
    if found is None:
        low, high = message.VERSIONS
        assert low <= version <= high, (
            f"{message.__name__} has versions {low}-{high}, not {version}"
        )
        found = _CODECS[message, version] = _lazy(message, version)
    return found


def _lazy(message: type[M], version: int) -> Codec[M]:
    def first_decode(buffer: bytes | bytearray | memoryview) -> M:
        made.decode = generate_decoder(message, version)
        return made.decode(buffer)

    def first_encode(value: M) -> list[Any]:
        made.encode = generate_encoder(message, version)
        return made.encode(value)

    made = Codec(message, version, first_decode, first_encode)
    return made
