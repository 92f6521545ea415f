"""Generates the decoder of one message in one version as a Python function.

The function is straight-line code: neighbouring fixed-size fields, together with the length byte of
what follows them, are read by one `unpack_from`, nested structures are inlined as loops. Bounds of
fixed-size fields are checked by struct itself (the buffer is exactly one message); every length and
count is compared with the bytes left before anything is allocated for it.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from brokers.protocol import primitives
from brokers.protocol.schema import Field, Kind, Message

# The struct code of a length prefix in versions that are not flexible.
LENGTH_CODES: Final = {Kind.STRING: "h", Kind.BYTES: "i", Kind.RECORDS: "i", Kind.ARRAY: "i"}
LENGTH_SIZES: Final = {"h": 2, "i": 4}


def generate_decoder(message: type[Message], version: int) -> Callable[[Any], Any]:
    writer = _DecoderWriter(message, version)
    source = writer.whole_message()
    exec(compile(source, f"<decode {message.__name__} v{version}>", "exec"), writer.names)
    decoder: Callable[[Any], Any] = writer.names["decode"]
    return decoder


def is_flexible(message: type[Message], version: int) -> bool:
    return message.FLEXIBLE is not None and version >= message.FLEXIBLE


def carries_records(message: type[Message], version: int) -> bool:
    """Tell whether the message has record data, so that the frame must not be copied."""
    for field in message.FIELDS:
        if not field.is_in(version):
            continue
        if field.kind is Kind.RECORDS:
            return True
        if isinstance(field.element, type) and carries_records(field.element, version):
            return True
    return False


def least_size(structure: type[Message], version: int, *, flexible: bool) -> int:
    """Return the minimum size of such a structure: it bounds a plausible count."""
    total = 1 if flexible else 0
    for field in structure.FIELDS:
        if field.tag is not None or not field.is_in(version):
            continue
        if field.kind is Kind.STRUCT:
            assert isinstance(field.element, type)
            inner = least_size(field.element, version, flexible=flexible)
            total += 1 if field.is_nullable_in(version) else inner
        elif field.kind.size:
            total += field.kind.size
        else:
            total += 1 if flexible else LENGTH_SIZES[LENGTH_CODES[field.kind]]
    return total


class _DecoderWriter:
    """Collects the source of one decoder. `run` holds the fixed-size reads not yet written out."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.message = message
        self.version = version
        self.flexible = is_flexible(message, version)
        self.keeps_view = carries_records(message, version)
        self.lines: list[str] = []
        self.depth = 2
        self.run: list[tuple[str, str]] = []
        self.serial = 0
        self.names: dict[str, Any] = {
            "new": object.__new__,
            "struct_error": struct.error,
            "unpack_from": struct.unpack_from,
            "left_over": primitives.left_over,
            "cut_short": primitives.cut_short,
            "not_utf8": primitives.not_utf8,
            "MAX_ELEMENTS": primitives.MAX_ELEMENTS,
            "MAX_STRING_BYTES": primitives.MAX_STRING_BYTES,
            "read_uvarint": primitives.read_uvarint,
            "skip_tags": primitives.skip_tags,
            "bad_length": primitives.bad_length,
            "too_many": primitives.too_many,
            "wrong_tag_size": primitives.wrong_tag_size,
        }

    # -- text ------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, stem: str) -> str:
        self.serial += 1
        return f"{stem}{self.serial}"

    def constant(self, value: object, stem: str) -> str:
        name = self.fresh(stem)
        self.names[name] = value
        return name

    def flush(self) -> None:
        """Write the pending fixed-size reads as one unpack."""
        if not self.run:
            return
        codes = "".join(code for code, _ in self.run)
        targets = ", ".join(target for _, target in self.run)
        if codes == "B":
            self.line(f"{targets} = buf[pos]")
            self.line("pos += 1")
        else:
            shape = struct.Struct(">" + codes)
            unpack = "unpack_" + codes.replace("?", "t")
            self.names[unpack] = shape.unpack_from
            self.line(f"{targets}{',' if len(self.run) == 1 else ''} = {unpack}(buf, pos)")
            self.line(f"pos += {shape.size}")
        self.run.clear()

    # -- structure -------------------------------------------------------------------------------

    def whole_message(self) -> str:
        title = f"{self.message.__name__} v{self.version}"
        self.structure(self.message, "o", self.message.__name__)
        wanted = "memoryview" if self.keeps_view else "bytes"
        head = [
            "def decode(buf):",
            f"    if type(buf) is not {wanted}: buf = {wanted}(buf)",
            "    pos = 0; end = len(buf); room = MAX_ELEMENTS",
            "    try:",
        ]
        tail = [
            f"        if pos != end: raise left_over('{title}', end - pos)",
            "        return o",
            "    except (struct_error, IndexError) as error:",
            f"        raise cut_short('{title}', end) from error",
            "    except UnicodeDecodeError as error:",
            f"        raise not_utf8('{title}', error) from error",
        ]
        return "\n".join([*head, *self.lines, *tail])

    def structure(self, structure: type[Message], target: str, path: str) -> None:
        self.line(f"{target} = new({self.constant(structure, 'C')})")
        tagged = []
        for field in structure.FIELDS:
            if not field.is_in(self.version):
                self.set_default(field, target)
            elif field.tag is not None and self.flexible:
                self.set_default(field, target)
                tagged.append(field)
            else:
                self.field(field, f"{target}.{field.name}", f"{path}.{field.name}")
        if self.flexible:
            self.tags(tagged, target, path)
        self.flush()

    def set_default(self, field: Field, target: str) -> None:
        if field.default == () and field.kind is Kind.ARRAY:
            value = "[]"
        elif field.default == () and field.kind is Kind.STRUCT:
            value = f"{self.constant(field.element, 'C')}()"
        else:
            value = repr(field.default)
        self.line(f"{target}.{field.name} = {value}")

    def tags(self, tagged: list[Field], target: str, path: str) -> None:
        count = self.fresh("tags")
        self.run.append(("B", count))
        self.flush()
        self.line(f"if {count}:")
        self.depth += 1
        if tagged:
            self.known_tags(tagged, count, target, path)
        else:
            self.line(f"pos = skip_tags(buf, pos, {count})")
        self.depth -= 1

    def known_tags(self, tagged: list[Field], count: str, target: str, path: str) -> None:
        tag, size, stop = self.fresh("tag"), self.fresh("size"), self.fresh("stop")
        self.line(f"if {count} > 127: {count}, pos = read_uvarint(buf, pos - 1)")
        self.line(
            f"if {count} * 2 > end - pos: raise bad_length('{path} tags', {count}, end - pos)"
        )
        self.line(f"for _ in range({count}):")
        self.depth += 1
        self.line(f"{tag}, pos = read_uvarint(buf, pos)")
        self.line(f"{size}, pos = read_uvarint(buf, pos)")
        self.line(f"{stop} = pos + {size}")
        self.line(f"if {stop} > end: raise bad_length('{path} tag', {size}, end - pos)")
        keyword = "if"
        for field in tagged:
            where = f"{path}.{field.name}"
            self.line(f"{keyword} {tag} == {field.tag}:")
            self.depth += 1
            self.field(field, f"{target}.{field.name}", where)
            self.flush()
            self.line(
                f"if pos != {stop}: raise wrong_tag_size('{where}', {size}, {size} + pos - {stop})"
            )
            self.depth -= 1
            keyword = "elif"
        self.line(f"else: pos = {stop}")
        self.depth -= 1

    # -- fields ----------------------------------------------------------------------------------

    def field(self, field: Field, target: str, path: str) -> None:
        nullable = field.is_nullable_in(self.version)
        if field.kind is Kind.STRUCT:
            self.nested(field, target, path, nullable=nullable)
        elif field.kind is Kind.ARRAY:
            self.array(field, target, path, nullable=nullable)
        elif field.kind.size:
            self.run.append((field.kind.code, target))
        else:
            self.sized(field.kind, target, path, nullable=nullable)

    def nested(self, field: Field, target: str, path: str, *, nullable: bool) -> None:
        assert isinstance(field.element, type)
        inner = self.fresh("o")
        if not nullable or field.tag is not None:
            self.flush()
            self.structure(field.element, inner, path)
            self.line(f"{target} = {inner}")
            return
        marker = self.fresh("n")
        self.run.append(("b", marker))
        self.flush()
        self.line(f"if {marker} < 0: {target} = None")
        self.line("else:")
        self.depth += 1
        self.structure(field.element, inner, path)
        self.line(f"{target} = {inner}")
        self.depth -= 1

    def length(self, kind: Kind) -> str:
        """Read a length prefix; null becomes -1 in both encodings."""
        length = self.fresh("n")
        if not self.flexible:
            self.run.append((LENGTH_CODES[kind], length))
            self.flush()
            return length
        self.run.append(("B", length))
        self.flush()
        self.line(f"if {length} > 127: {length}, pos = read_uvarint(buf, pos - 1)")
        self.line(f"{length} -= 1")
        return length

    def sized(self, kind: Kind, target: str, path: str, *, nullable: bool) -> None:
        """Read a string, bytes or record data."""
        length, stop = self.length(kind), self.fresh("stop")
        limit = f" or {length} > MAX_STRING_BYTES" if kind is Kind.STRING and self.flexible else ""
        if nullable:
            self.line(f"if {length} < 0: {target} = None")
            self.line("else:")
            self.depth += 1
        self.line(f"{stop} = pos + {length}")
        self.line(f"if {length} < 0 or {stop} > end{limit}:")
        self.line(f"    raise bad_length('{path}', {length}, end - pos)")
        self.line(f"{target} = {cut(kind, stop, keeps_view=self.keeps_view)}")
        self.line(f"pos = {stop}")
        if nullable:
            self.depth -= 1

    def array(self, field: Field, target: str, path: str, *, nullable: bool) -> None:
        count, element = self.length(Kind.ARRAY), field.element
        if nullable:
            self.line(f"if {count} < 0: {target} = None")
            self.line("else:")
            self.depth += 1
        if isinstance(element, Kind):
            least = element.size or (1 if self.flexible else LENGTH_SIZES[LENGTH_CODES[element]])
        else:
            assert element is not None
            least = least_size(element, self.version, flexible=self.flexible)
        self.line(f"if {count} < 0 or {count} * {least} > end - pos:")
        self.line(f"    raise bad_length('{path}', {count}, end - pos)")
        self.line(f"room -= {count}")
        self.line(f"if room < 0: raise too_many('{path}', MAX_ELEMENTS - room)")
        if isinstance(element, Kind) and element.size and element is not Kind.UUID:
            numbers = f"list(unpack_from(f'>{{{count}}}{element.code}', buf, pos))"
            self.line(f"{target} = {numbers} if {count} else []")
            self.line(f"pos += {count} * {element.size}")
        else:
            self.loop(element, target, path, count)
        if nullable:
            self.depth -= 1

    def loop(
        self, element: Kind | type[Message] | None, target: str, path: str, count: str
    ) -> None:
        items, item = self.fresh("items"), self.fresh("o")
        self.line(f"{items} = {target} = []")
        self.line(f"for _ in range({count}):")
        self.depth += 1
        if element is Kind.UUID:
            self.line(f"{item} = bytes(buf[pos:pos + 16]); pos += 16")
        elif isinstance(element, Kind):
            self.sized(element, item, path, nullable=False)
        else:
            assert element is not None
            self.structure(element, item, path)
        self.line(f"{items}.append({item})")
        self.depth -= 1


def cut(kind: Kind, stop: str, *, keeps_view: bool) -> str:
    """Return the source that cuts a value out of the buffer."""
    piece = f"buf[pos:{stop}]"
    if kind is Kind.STRING:
        return f"str({piece}, 'utf-8')" if keeps_view else f"{piece}.decode()"
    if kind is Kind.BYTES and keeps_view:
        return f"bytes({piece})"
    return piece
