"""Chooses the lane of a request by the first bytes of its frame.

Knows no sockets: it reads the buffer into which a frame was just received, and returns the bytes
to send, or an object that delivers them later.
"""

from collections.abc import Callable, Iterable, Mapping, Sized
from struct import Struct
from typing import ClassVar, Final, Protocol, TypeAlias

from brokers.protocol.apis import Api
from brokers.protocol.frames import SIZE_PREFIX
from brokers.server.context import Context
from brokers.server.express.late import LateAnswer
from brokers.server.metrics import Histogram

# A lane's response: bytes that are sent as they are, buffers and file ranges in order, or an object
# that delivers bytes later.
Answer: TypeAlias = bytes | list[Sized] | LateAnswer
# Takes the whole frame's buffer, a view of it, the frame's length, the correlation id and the time
# of arrival; None if the request has to take the regular path.
Serve: TypeAlias = Callable[[bytearray, memoryview, int, int, float], Answer | None]


class Lane(Protocol):
    """The lane of one version of one API; see the package."""

    KEY: ClassVar[int]
    VERSIONS: ClassVar[tuple[int, int]]

    def __init__(self, context: Context, api: Api, version: int, seconds: Histogram) -> None: ...

    @property
    def serve(self) -> Serve: ...


# The start of every frame: its size, the API's key and version as one number, and the
# correlation id.
_HEAD: Final = Struct(">iii")
_unpack_head: Final = _HEAD.unpack_from


def _kind(key: int, version: int) -> int:
    return key << 16 | version


class Express:
    """The lanes of one broker. Belongs to the event loop."""

    __slots__ = ("_lanes",)

    def __init__(
        self, context: Context, apis: Mapping[int, Api], lanes: Iterable[type[Lane]]
    ) -> None:
        self._lanes: dict[int, Serve] = {}
        for lane in lanes:
            api = apis[lane.KEY]
            seconds = context.metrics.requests_of(api.name)
            for version in range(lane.VERSIONS[0], lane.VERSIONS[1] + 1):
                assert api.serves(version), f"{api.name} version {version} is not served"
                self._lanes[_kind(api.key, version)] = lane(context, api, version, seconds).serve

    def serve(self, data: bytearray, view: memoryview, count: int, now: float) -> Answer | None:
        """Serve the request that makes up all of `count` bytes, if a lane takes it."""
        if count < _HEAD.size:
            return None
        size, kind, correlation = _unpack_head(view)
        lane = self._lanes.get(kind)
        if lane is None or size != count - SIZE_PREFIX:
            return None
        return lane(data, view, count, correlation, now)
