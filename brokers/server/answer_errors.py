"""Finds whether a response contains an error code in any of its fields.

Works on any message by its fields; the fields to check are found once for each API.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final, TypeAlias

from brokers.protocol.schema import Kind, Message

# Returns true if there is an error.
Check: TypeAlias = Callable[[Message], object]
_CODE: Final = "error_code"


def error_check(message: type[Message]) -> Check | None:
    """Return the function that finds an error code in such a message; None if it has no field."""
    own: Check | None = None
    inner: list[tuple[Callable[[Message], Iterable[Message] | None], Check]] = []
    for field in message.FIELDS:
        element = field.element
        if field.name == _CODE:
            own = attrgetter(_CODE)
        elif field.kind is Kind.ARRAY and isinstance(element, type):
            check = error_check(element)
            if check is not None:
                inner.append((attrgetter(field.name), check))
    if not inner:
        return own

    def find(answer: Message) -> object:
        if own is not None and own(answer):
            return True
        for elements_of, check in inner:
            for element in elements_of(answer) or ():
                if check(element):
                    return True
        return False

    return find
