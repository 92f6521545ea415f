"""Admits callers to records: every read of records begins here.

Pages, streams, sockets and consumers present themselves as a `Reader`, and sources of records ask
for the `Admission` that only this module makes. Rights are checked here, and nowhere else.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol


class Readable(Protocol):
    """The topics whose records a caller may read; equal if the set is the same."""

    def among(self, names: Iterable[str]) -> Sequence[str]: ...
    def __contains__(self, name: object) -> bool: ...
    def __bool__(self) -> bool: ...


class Reader(Protocol):
    """A caller, as its interface knows it."""

    @property
    def key(self) -> str:
        """Return the key under which limits count the caller."""
        ...

    @property
    def readable(self) -> Readable:
        """Return the topics whose records the caller may read at present."""
        ...

    def refusal(self, topic: str) -> Exception:
        """Return the interface's error for a topic that the caller may not read."""
        ...


class NothingReadable(Exception):
    """A pattern matches no topic whose records its caller may read."""


class Admission:
    """The permission of one reader to read records; `admit` and `admit_by_pattern` make it."""

    __slots__ = ("_reader", "_topics")

    def __init__(self, reader: Reader, topics: Iterable[str]) -> None:
        self._reader = reader
        # Empty for a pattern, which any readable topic may match.
        self._topics = frozenset(topics)

    @property
    def key(self) -> str:
        return self._reader.key

    @property
    def readable(self) -> Readable:
        """Return the readable topics at present; rights may change during a read."""
        return self._reader.readable

    def require(self, topics: Iterable[str]) -> None:
        """Raise the reader's refusal unless all topics are readable."""
        readable = self.readable
        for topic in topics:
            if topic not in readable:
                raise self._reader.refusal(topic)

    def renew(self, reader: Reader, topics: Iterable[str]) -> bool:
        """Take over a caller's new rights; tell whether they cover all topics that are read."""
        self._reader = reader
        readable = reader.readable
        return bool(readable) and all(topic in readable for topic in {*self._topics, *topics})


def admit(reader: Reader, topics: Iterable[str]) -> Admission:
    """Admit a reader to topics, or raise its refusal of the first one that it may not read."""
    admission = Admission(reader, topics)
    admission.require(topics)
    return admission


def admit_by_pattern(reader: Reader) -> Admission:
    """Admit a reader to what it may read; raise NothingReadable if that is nothing."""
    if not reader.readable:
        raise NothingReadable
    return Admission(reader, ())
