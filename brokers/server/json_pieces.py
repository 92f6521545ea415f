"""Long arrays of JSON in pieces, each of which is written in less than a millisecond."""

import json
from collections.abc import Iterable, Iterator
from typing import Final

ELEMENTS_OF_A_PIECE: Final = 100


def pieces(elements: Iterable[object], at_once: int = ELEMENTS_OF_A_PIECE) -> Iterator[str]:
    """The elements of an array, without its brackets, some at a time."""
    batch: list[object] = []
    comma = ""
    for element in elements:
        batch.append(element)
        if len(batch) == at_once:
            yield comma + json.dumps(batch)[1:-1]
            comma = ", "
            batch.clear()
    if batch:
        yield comma + json.dumps(batch)[1:-1]


def array(
    name: str, elements: Iterable[object], at_once: int = ELEMENTS_OF_A_PIECE
) -> Iterator[str]:
    """A member of an object: its name and the array, without what separates it from others."""
    yield json.dumps(name) + ": ["
    yield from pieces(elements, at_once)
    yield "]"
