"""Stores the templates of lanes by the bytes that requests of one kind have in common.

Bounded in number and in the size of each, for any input: when there is no room for one more, all
are dropped, and those in use are learned again at once. That happens at most once a second:
learning costs as much as answering, and more templates may be in use than fit.
"""

from struct import Struct
from typing import Final, Generic, TypeVar

# Of all connections together, in one version of one API; each takes about 1 KiB.
MAX_TEMPLATES: Final = 1_024
# A longer head has a client id or topic name that is hardly used twice a second.
MAX_HEAD_BYTES: Final = 512
# The shortest time between dropping all templates twice.
FORGET_SECONDS: Final = 1.0

# The start of the common bytes in a frame, which begin with the length of the client id, and the
# low byte of that length.
HEAD_START: Final = 12
CLIENT_ID_LOW: Final = 13
# Three numbers in a row that no template has otherwise, to find the positions of a message's own.
OFFSETS: Final = Struct(">qqq")
MARKS: Final = (0x1122334455667711, 0x2233445566771122, 0x3344556677112233)

T = TypeVar("T")


class Templates(Generic[T]):
    """See the module. Lanes look templates up with `get`."""

    __slots__ = ("_forgotten", "_known", "get")

    def __init__(self) -> None:
        self._known: dict[bytes, T] = {}
        self._forgotten = -FORGET_SECONDS  # monotonic seconds
        self.get = self._known.get

    def __len__(self) -> int:
        return len(self._known)

    def has_room(self, now: float) -> bool:
        """Whether one more can be stored; drop all others first if that is needed and allowed."""
        if len(self._known) >= MAX_TEMPLATES:
            if now - self._forgotten < FORGET_SECONDS:
                return False
            self._forgotten = now
            self._known.clear()
        return True

    def keep(self, head: bytes, template: T) -> None:
        """Store a template; `has_room` must have returned true."""
        self._known[head] = template
