"""Translates a subscribing frame into partitions or topics, and their start. Pure."""

from collections.abc import Sequence

from gateway.kafka.topic_pattern import BadPattern, TopicPattern
from gateway.kafka.values import BEGINNING, END, Place, Position, PositionKind
from gateway.rest.codes import ApiError, Code
from gateway.ws import frames
from gateway.ws.actions import Join, Open
from gateway.ws.frames import Subscribe


def opening_of(frame: Subscribe) -> Open:
    """Return what a frame subscribes to. Raises ApiError if that is ambiguous or missing."""
    since = frame.start
    named = [frame.topics, frame.assign, frame.pattern]
    if isinstance(since, str):
        start = BEGINNING if since == "earliest" else END
    elif since.offsets is not None:
        if since.time_ms is not None or named != [None] * 3:
            raise unclear(
                "from.offsets names the partitions: leave out time_ms, topics, pattern and assign"
            )
        return Open(frame.sid, positions_of(since.offsets))
    elif since.time_ms is not None:
        start = Position(kind=PositionKind.TIME, value=since.time_ms)
    else:
        raise unclear("from is empty: give earliest, latest, time_ms or offsets")
    if named.count(None) != 2:
        raise unclear("give one of topics, pattern, assign and from.offsets")
    if frame.assign is not None:
        return Open(frame.sid, dict.fromkeys((one.place() for one in frame.assign), start))
    topics = tuple(dict.fromkeys(frame.topics or ()))
    return Open(frame.sid, {}, topics, start, pattern_of(frame))


def joining_of(frame: Subscribe, group: str) -> Join:
    is_clear = (frame.topics is None) != (frame.pattern is None) and frame.assign is None
    if not is_clear or not isinstance(frame.start, str):
        raise unclear("a group divides topics: give topics or pattern, and earliest or latest")
    topics = tuple(dict.fromkeys(frame.topics or ()))
    return Join(frame.sid, group, topics, frame.start == "earliest", pattern_of(frame))


def pattern_of(frame: Subscribe) -> TopicPattern | None:
    if frame.pattern is None:
        return None
    try:
        return TopicPattern(frame.pattern)
    except BadPattern as error:
        raise unclear(str(error)) from None


def positions_of(offsets: Sequence[frames.At]) -> dict[Place, Position]:
    return {one.place(): Position(kind=PositionKind.OFFSET, value=one.offset) for one in offsets}


def unclear(message: str) -> ApiError:
    return ApiError(Code.UNPROCESSABLE, message)
