"""Looks up record timestamps, from which clients compute the time lag of groups.

Answers for partitions that this broker leads; other places get an error each, since partitions may
have moved between two requests. Opens a batch for each place and yields to other tasks in between.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from brokers.protocol.errors import KafkaError
from brokers.server.context import Context
from brokers.server.json_pieces import array
from brokers.slices import Slices

# Places of one request. Each may open a batch, which takes some milliseconds at worst.
MAX_PLACES: Final = 500
# No partition's index, and no offset, has more digits.
_MAX_INDEX_DIGITS: Final = 10
_MAX_OFFSET_DIGITS: Final = 19

Place = tuple[str, int, int]
# A time in milliseconds, None if no record follows the offset, or the reason for no answer.
Time = int | None | dict[str, str]


def places_of(texts: Sequence[str]) -> list[Place]:
    """Parse the requested places, each as topic:index:offset; ValueError says what is wrong."""
    if len(texts) > MAX_PLACES:
        raise ValueError(f"{len(texts)} positions in one request, {MAX_PLACES} are allowed")
    return [_place(text) for text in texts]


async def times_of(context: Context, places: Sequence[Place]) -> Iterator[str]:
    """Yield JSON in pieces: the broker's clock, and a time for each place, in order."""
    slices, times = Slices(context.clock), []
    for topic, index, offset in places:
        times.append(_time(context, topic, index, offset))
        await slices.breathe()
    return _told(context.clock.now_ms(), times)


def _told(now_ms: int, times: Sequence[Time]) -> Iterator[str]:
    yield f'{{"ms": {now_ms}, '
    yield from array("times", times)
    yield "}\n"


def _time(context: Context, topic: str, index: int, offset: int) -> Time:
    partition = context.replicas.led((topic, index))
    if partition is None:
        return {"error": f"{topic}-{index} is not led here"}
    try:
        return partition.timestamp_at(offset)
    except KafkaError as error:
        return {"error": f"{error.code.name}: {error}"}


def _place(text: str) -> Place:
    topic, _, rest = text.partition(":")
    index, _, offset = rest.partition(":")
    is_sound = _is_number(index, _MAX_INDEX_DIGITS) and _is_number(offset, _MAX_OFFSET_DIGITS)
    if not topic or not is_sound:
        raise ValueError(f"at={text!r} is not a position; write topic:index:offset")
    return topic, int(index), int(offset)


def _is_number(text: str, digits: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= digits
