"""What lanes have learned, by the bytes that requests of one kind have in common.

Bounded in number and in the size of each, whoever sends what: when there is no room for one more,
all are forgotten, and those that are in use are learned again at once.
"""

from typing import Final, Generic, TypeVar

# Of all connections together, in one version of one API; each takes about 1 KiB.
MAX_TEMPLATES: Final = 1_024
# A longer head has a client id or topic name that nobody uses twice a second.
MAX_HEAD_BYTES: Final = 512

T = TypeVar("T")


class Templates(Generic[T]):
    """See the module. Lanes look things up with `get`."""

    __slots__ = ("_known", "get")

    def __init__(self) -> None:
        self._known: dict[bytes, T] = {}
        self.get = self._known.get

    def __len__(self) -> int:
        return len(self._known)

    def keep(self, head: bytes, template: T) -> None:
        if len(self._known) >= MAX_TEMPLATES:
            self._known.clear()
        self._known[head] = template
