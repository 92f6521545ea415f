"""Generates the encoder of one message in one version as a Python function.

The mirror of `decoding`: neighbouring fixed-size fields and the length byte of what follows them
are packed by one call. An encoder returns a list of buffers; record data is in it as the very
object that the message holds, so it is never copied and may be any sized buffer.
"""

import struct
from collections.abc import Callable
from typing import Any

from brokers.protocol import primitives
from brokers.protocol.decoding import LENGTH_CODES, carries_records, is_flexible
from brokers.protocol.errors import EncodeError
from brokers.protocol.schema import ZERO_UUID, Field, Kind, Message


def generate_encoder(message: type[Message], version: int) -> Callable[[Any], list[Any]]:
    writer = _EncoderWriter(message, version)
    source = writer.whole_message()
    exec(compile(source, f"<encode {message.__name__} v{version}>", "exec"), writer.names)
    encoder: Callable[[Any], list[Any]] = writer.names["encode"]
    return encoder


class _EncoderWriter:
    """Collects the source of one encoder. `run` holds fixed-size values not written out yet."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.message = message
        self.version = version
        self.flexible = is_flexible(message, version)
        self.splits = carries_records(message, version)
        self.lines: list[str] = []
        self.depth = 2
        self.run: list[tuple[str, str]] = []
        self.serial = 0
        self.names: dict[str, Any] = {
            "join": b"".join,
            "pack": struct.pack,
            "struct_error": struct.error,
            "EncodeError": EncodeError,
            "ONE_BYTE": primitives.ONE_BYTE,
            "uvarint": primitives.uvarint,
            "string_length": primitives.string_length,
            "lost_value": primitives.lost_value,
            "wrong_uuid": primitives.wrong_uuid,
        }

    # -- text ------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, stem: str) -> str:
        self.serial += 1
        return f"{stem}{self.serial}"

    def packed(self, run: list[tuple[str, str]]) -> str:
        codes = "".join(code for code, _ in run)
        pack = "pack_" + codes.replace("?", "t")
        self.names[pack] = struct.Struct(">" + codes).pack
        return f"{pack}({', '.join(value for _, value in run)})"

    def flush(self) -> None:
        """Write the pending fixed-size values as one pack."""
        if self.run:
            constant = self.run == [("B", "0")]
            self.line("w(b'\\0')" if constant else f"w({self.packed(self.run)})")
            self.run.clear()

    # -- structure -------------------------------------------------------------------------------

    def whole_message(self) -> str:
        self.structure(self.message, "o", self.message.__name__)
        self.flush()
        head = ["def encode(o):", "    out = []; w = out.append", "    try:"]
        if self.splits:
            head.insert(1, "    parts = []")
        result = (
            "if out: parts.append(join(out))\n        return parts"
            if self.splits
            else "return [join(out)]"
        )
        title = f"{self.message.__name__} v{self.version}"
        tail = [
            f"        {result}",
            "    except (struct_error, AttributeError, TypeError, UnicodeEncodeError) as error:",
            f"        raise EncodeError(f'{title}: {{error}}') from error",
        ]
        return "\n".join([*head, *self.lines, *tail])

    def structure(self, structure: type[Message], value: str, path: str) -> None:
        tagged = []
        for field in structure.FIELDS:
            where = f"{path}.{field.name}"
            if not field.is_in(self.version):
                if not field.ignorable:
                    self.refuse_loss(field, f"{value}.{field.name}", where)
            elif field.tag is not None and self.flexible:
                tagged.append(field)
            else:
                self.field(field, f"{value}.{field.name}", where)
        if self.flexible:
            self.tags(tagged, value, path)

    def differs(self, field: Field, value: str) -> str:
        """Return an expression that is true if the value is not the field's default."""
        if field.kind is Kind.STRUCT and isinstance(field.element, type):
            return self.structure_differs(field.element, value, nullable=field.default is None)
        if field.default is None:
            return f"{value} is not None"
        if not field.default or field.default == ZERO_UUID:
            return value if field.kind is not Kind.UUID else f"{value} != {ZERO_UUID!r}"
        return f"{value} != {field.default!r}"

    def structure_differs(self, structure: type[Message], value: str, *, nullable: bool) -> str:
        """Treat a structure of defaults like an absent one, as Kafka's own encoder does."""
        inner = [self.differs(field, f"{value}.{field.name}") for field in structure.FIELDS]
        either = f"({' or '.join(inner)})"
        return f"({value} is not None and {either})" if nullable else either

    def refuse_loss(self, field: Field, value: str, path: str) -> None:
        self.line(f"if {self.differs(field, value)}: raise lost_value('{path}', {self.version})")

    def tags(self, tagged: list[Field], value: str, path: str) -> None:
        if not tagged:
            self.run.append(("B", "0"))
            return
        count = self.fresh("tags")
        conditions = [self.differs(field, f"{value}.{field.name}") for field in tagged]
        self.line(f"{count} = 0")
        for condition in conditions:
            self.line(f"if {condition}: {count} += 1")
        self.run.append(("B", count))
        self.flush()
        self.line(f"if {count}:")
        self.depth += 1
        for field, condition in zip(tagged, conditions, strict=True):
            self.line(f"if {condition}:")
            self.depth += 1
            self.tagged_field(field, f"{value}.{field.name}", f"{path}.{field.name}")
            self.depth -= 1
        self.depth -= 1

    def tagged_field(self, field: Field, value: str, path: str) -> None:
        """Write the field to a buffer of its own first, because its size precedes it."""
        outer, piece = self.fresh("outer"), self.fresh("piece")
        self.line(f"{outer} = w; {piece} = []; w = {piece}.append")
        self.field(field, value, path)
        self.flush()
        self.line(f"w = {outer}; {piece} = join({piece})")
        self.line(f"w(uvarint({field.tag}) + uvarint(len({piece}))); w({piece})")

    # -- fields ----------------------------------------------------------------------------------

    def field(self, field: Field, value: str, path: str) -> None:
        nullable = field.is_nullable_in(self.version)
        if field.kind is Kind.STRUCT:
            self.nested(field, value, path, nullable=nullable)
        elif field.kind is Kind.ARRAY:
            self.array(field, value, path, nullable=nullable)
        elif field.kind is Kind.UUID:
            self.line(f"if len({value}) != 16: raise wrong_uuid('{path}', {value})")
            self.run.append((field.kind.code, value))
        elif field.kind.size:
            self.run.append((field.kind.code, value))
        else:
            self.sized(field.kind, value, nullable=nullable)

    def nested(self, field: Field, value: str, path: str, *, nullable: bool) -> None:
        assert isinstance(field.element, type)
        inner = self.fresh("o")
        self.line(f"{inner} = {value}")
        if not nullable or field.tag is not None:
            self.structure(field.element, inner, path)
            return
        self.flush()
        self.line(f"if {inner} is None: w(b'\\xff')")
        self.line("else:")
        self.depth += 1
        self.run.append(("b", "1"))
        self.structure(field.element, inner, path)
        self.flush()
        self.depth -= 1

    def length(self, kind: Kind, length: str) -> None:
        """Write the pending run with a length behind it. Flexible lengths are encoded plus one."""
        if not self.flexible:
            self.run.append((LENGTH_CODES[kind], length))
            self.flush()
            return
        long_form = "string_length" if kind is Kind.STRING else "uvarint"
        if not self.run:
            self.line(f"w(ONE_BYTE[{length}] if {length} < 128 else {long_form}({length}))")
            return
        self.line(f"if {length} < 128: w({self.packed([*self.run, ('B', length)])})")
        self.line(f"else: w({self.packed(self.run)}); w({long_form}({length}))")
        self.run.clear()

    def measured(self, value: str, *, nullable: bool, conversion: str) -> tuple[str, str]:
        """Return local names of the value in wire form and of its length prefix."""
        item, length = self.fresh("v"), self.fresh("n")
        plus = " + 1" if self.flexible else ""
        self.line(f"{item} = {value}")
        if not nullable:
            if conversion:
                self.line(f"{item} = {item}{conversion}")
            self.line(f"{length} = len({item}){plus}")
            return item, length
        self.line(f"if {item} is None: {length} = {0 if self.flexible else -1}; {item} = b''")
        statement = f"{item} = {item}{conversion}; " if conversion else ""
        self.line(f"else: {statement}{length} = len({item}){plus}")
        return item, length

    def sized(self, kind: Kind, value: str, *, nullable: bool) -> None:
        """Write a string, bytes or record data."""
        conversion = ".encode()" if kind is Kind.STRING else ""
        item, length = self.measured(value, nullable=nullable, conversion=conversion)
        self.length(kind, length)
        if kind is Kind.RECORDS:
            # Emit the preceding fields as one buffer; the record data follows uncopied.
            self.line(f"if len({item}): parts.append(join(out)); parts.append({item}); out.clear()")
        else:
            self.line(f"w({item})")

    def array(self, field: Field, value: str, path: str, *, nullable: bool) -> None:
        items, length = self.measured(value, nullable=nullable, conversion="")
        self.length(Kind.ARRAY, length)
        element = field.element
        if isinstance(element, Kind) and element.size and element is not Kind.UUID:
            self.line(f"if {items}: w(pack(f'>{{len({items})}}{element.code}', *{items}))")
            return
        item = self.fresh("o")
        self.line(f"for {item} in {items}:")
        self.depth += 1
        if element is Kind.UUID:
            self.line(f"if len({item}) != 16: raise wrong_uuid('{path}', {item})")
            self.line(f"w({item})")
        elif isinstance(element, Kind):
            self.sized(element, item, nullable=False)
        else:
            assert element is not None
            self.structure(element, item, path)
            self.flush()
        self.depth -= 1
