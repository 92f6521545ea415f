"""A caller who reads records: everything, unless a test says otherwise."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.access.grants import EVERYTHING, Names


class Refused(Exception):
    """The caller may not read the topic of the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeReader:
    key: str = "user:alice"
    names: Callable[[], Names] = field(default=lambda: EVERYTHING)

    @property
    def readable(self) -> Names:
        return self.names()

    def refusal(self, topic: str) -> Exception:
        return Refused(topic)
