"""The bytes of a message in pieces, each with what it is: the handle by which a test breaks them.

A second, interpreting encoder, written from the wire's rules and not from the product's code; the
pieces together are the message's bytes, which the tests compare with the codec's.
"""

import struct
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from brokers.protocol.schema import Field, Kind, Message
from tests.oracles.strategies import is_nullable


class Part(Enum):
    """What a piece is. Lengths and counts stand apart from what they measure."""

    NUMBER = auto()  # anything of fixed size
    LENGTH = auto()  # of a text, bytes or record data
    COUNT = auto()  # of an array
    TEXT = auto()
    DATA = auto()
    MARKER = auto()  # whether a structure is there
    TAGS = auto()  # how many tagged fields follow
    TAG = auto()
    SIZE = auto()  # of a tagged field


@dataclass(frozen=True, slots=True)
class Piece:
    part: Part
    data: bytes
    may_be_null: bool = False
    form: str = ""  # of a length or count: "h" or "i", or "varint"

    def saying(self, data: bytes) -> "Piece":
        """Give the piece other bytes; what it is stays."""
        return Piece(self.part, data, self.may_be_null, self.form)

    def measuring(self, length: int) -> "Piece":
        """Give a length or count another number, written as its form wants it; -1 is null."""
        return self.saying(length_bytes(length, self.form))


def varint(number: int) -> bytes:
    """Write an unsigned varint, of a number of any size."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def length_bytes(length: int, form: str) -> bytes:
    return varint(length + 1) if form == "varint" else struct.pack(f">{form}", length)


def joined(pieces: list[Piece]) -> bytes:
    return b"".join(piece.data for piece in pieces)


def pieces_of(value: Message, version: int, flexible: int | None) -> list[Piece]:
    """Take a message apart. `flexible` is the first flexible version, of the whole message."""
    return _Layout(version, is_flexible=flexible is not None and version >= flexible).structure(
        value
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    version: int
    is_flexible: bool

    def structure(self, value: Message) -> list[Piece]:
        pieces: list[Piece] = []
        tagged: list[tuple[int, list[Piece]]] = []
        for field in value.FIELDS:
            if not field.is_in(self.version):
                continue
            found = getattr(value, field.name)
            if field.tag is None:
                pieces += self.field(field, found)
            elif not _is_default(field, found):
                tagged.append((field.tag, self.tagged_value(field, found)))
        if self.is_flexible:
            pieces.append(Piece(Part.TAGS, varint(len(tagged))))
            for tag, inner in tagged:
                pieces.append(Piece(Part.TAG, varint(tag)))
                pieces.append(Piece(Part.SIZE, varint(len(joined(inner)))))
                pieces += inner
        return pieces

    def tagged_value(self, field: Field, found: Any) -> list[Piece]:
        # A structure behind a tag needs no marker: its tag says that it is there.
        return self.structure(found) if field.kind is Kind.STRUCT else self.field(field, found)

    def field(self, field: Field, found: Any) -> list[Piece]:
        may_be_null = is_nullable(field, self.version)
        if field.kind is Kind.STRUCT:
            if not may_be_null:
                return self.structure(found)
            marker = Piece(Part.MARKER, b"\xff" if found is None else b"\1", may_be_null)
            return [marker] if found is None else [marker, *self.structure(found)]
        if field.kind is not Kind.ARRAY:
            return self.plain(field.kind, found, may_be_null=may_be_null)
        count = -1 if found is None else len(found)
        pieces = [self.length(Part.COUNT, count, "i", may_be_null=may_be_null)]
        for item in found or ():
            if isinstance(field.element, type):
                pieces += self.structure(item)
            else:
                assert field.element is not None
                pieces += self.plain(field.element, item, may_be_null=False)
        return pieces

    def plain(self, kind: Kind, found: Any, *, may_be_null: bool) -> list[Piece]:
        if kind.size:
            return [Piece(Part.NUMBER, struct.pack(f">{kind.code}", found))]
        form = "h" if kind is Kind.STRING else "i"
        if found is None:
            return [self.length(Part.LENGTH, -1, form, may_be_null=may_be_null)]
        data = found.encode() if kind is Kind.STRING else bytes(found)
        part = Part.TEXT if kind is Kind.STRING else Part.DATA
        length = self.length(Part.LENGTH, len(data), form, may_be_null=may_be_null)
        return [length, Piece(part, data)]

    def length(self, part: Part, length: int, form: str, *, may_be_null: bool) -> Piece:
        form = "varint" if self.is_flexible else form
        return Piece(part, length_bytes(length, form), may_be_null, form)


def _is_default(field: Field, found: Any) -> bool:
    if field.kind is Kind.STRUCT:
        assert isinstance(field.element, type)
        return found is None or found == field.element()
    if field.kind is Kind.ARRAY:
        return found == []
    return bool(found == field.default)
