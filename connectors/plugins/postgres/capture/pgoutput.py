"""Decodes messages of PostgreSQL's output plugin pgoutput, version 1, and their frames.

Pure. The bytes come from a server that a config names, so every length is checked against the
remaining bytes before use; a mismatch is a `BadMessage` with its position.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Final, TypeAlias

from connectors.plugins.postgres.capture.relations import UNCHANGED, Cell, Operation

# PostgreSQL counts microseconds from the first second of 2000.
EPOCH_2000_US: Final = 946_684_800_000_000
# A table of PostgreSQL has at most this many columns, and 63 bytes in a name; names of types and
# schemas too.
MAX_COLUMNS: Final = 1664
# The most tables of one TRUNCATE; each takes four bytes of the message.
MAX_TRUNCATED: Final = 100_000

Cells: TypeAlias = tuple[Cell, ...]


class BadMessage(ValueError):
    """Bytes that are not a message of pgoutput."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """A transaction begins; all its changes follow, up to its commit."""

    final_lsn: int
    commit_us: int
    xid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A transaction ends; `end_lsn` is the LSN after it."""

    commit_lsn: int
    end_lsn: int
    commit_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationColumn:
    name: str
    is_key: bool
    type_oid: int
    type_modifier: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """The definition of a table from here on."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A row was inserted, updated or deleted.

    `old` is present if the table's replica identity includes it, or if the key has changed; if it
    is only a key, the other columns are None.
    """

    operation: Operation
    relation: int
    old: Cells | None = None
    is_old_key_only: bool = False
    new: Cells | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The transaction came from another server, where its commit is at `lsn`."""

    lsn: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """A message that is not about rows: a type, or one written by a program."""

    kind: str


Message: TypeAlias = Begin | Commit | Origin | Relation | Change | Truncate | Ignored


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """A message with its LSN."""

    lsn: int
    wal_end: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Keepalive:
    """A keepalive: the server has sent everything up to `wal_end`, and may request a reply."""

    wal_end: int
    wants_reply: bool


def frame(data: bytes) -> Payload | Keepalive:
    """Decode one replication frame."""
    reader = _Reader(data)
    kind = reader.letter()
    if kind == "w":
        lsn, wal_end, _sent = reader.unpack(_THREE_LONGS)
        return Payload(lsn=lsn, wal_end=wal_end, body=data[reader.at :])
    if kind == "k":
        wal_end, _sent, wants = reader.unpack(_KEEPALIVE)
        return Keepalive(wal_end=wal_end, wants_reply=bool(wants))
    raise BadMessage(f"a frame of kind {kind!r} is not a replication frame")


def status(lsn: int, *, now_us: int) -> bytes:
    """Encode a status update that confirms everything up to an LSN."""
    return _STATUS.pack(b"r", lsn, lsn, lsn, now_us - EPOCH_2000_US, 0)


def decode(body: bytes) -> Message:
    """Decode one message. Raises BadMessage if it is invalid or too long."""
    reader = _Reader(body)
    kind = reader.letter()
    read = _READERS.get(kind)
    if read is None:
        raise BadMessage(f"a message of kind {kind!r} is not in version 1 of pgoutput")
    message = read(reader)
    if not isinstance(message, Ignored) and reader.at != len(body):
        raise BadMessage(f"{len(body) - reader.at} bytes follow a message of kind {kind!r}")
    return message


class _Reader:
    """Bytes with a read position."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def unpack(self, form: Struct) -> tuple[int, ...]:
        self.require(form.size)
        found = form.unpack_from(self.data, self.at)
        self.at += form.size
        return found

    def require(self, size: int) -> None:
        left = len(self.data) - self.at
        if not 0 <= size <= left:
            raise BadMessage(f"{size} bytes are announced at {self.at}, and {left} are left")

    def letter(self) -> str:
        return chr(self.unpack(_BYTE)[0])

    def number(self, form: Struct) -> int:
        return self.unpack(form)[0]

    def text(self, size: int) -> str:
        self.require(size)
        start, self.at = self.at, self.at + size
        return self._text(start, self.at)

    def name(self) -> str:
        """Read a zero-terminated text."""
        start, end = self.at, self.data.find(0, self.at)
        if end < 0:
            raise BadMessage(f"a name at {start} has no end")
        self.at = end + 1
        return self._text(start, end)

    def _text(self, start: int, end: int) -> str:
        try:
            return str(self.data[start:end], "utf-8")
        except UnicodeDecodeError as error:
            raise BadMessage(f"the text at {start} is not UTF-8: {error.reason}") from None

    def cells(self) -> Cells:
        count = self.number(_SHORT)
        if count > MAX_COLUMNS:
            raise BadMessage(f"a row has {count} columns, and PostgreSQL allows {MAX_COLUMNS}")
        return tuple([self._cell() for _ in range(count)])

    def _cell(self) -> Cell:
        kind = self.letter()
        if kind == "t":
            return self.text(self.number(_LONG))
        if kind == "n":
            return None
        if kind == "u":
            return UNCHANGED
        raise BadMessage(f"a column of kind {kind!r} at {self.at - 1} is unexpected")


def _begin(reader: _Reader) -> Begin:
    lsn, committed, xid = reader.unpack(_BEGIN)
    return Begin(final_lsn=lsn, commit_us=committed + EPOCH_2000_US, xid=xid)


def _commit(reader: _Reader) -> Commit:
    _flags, lsn, end, committed = reader.unpack(_COMMIT)
    return Commit(commit_lsn=lsn, end_lsn=end, commit_us=committed + EPOCH_2000_US)


def _relation(reader: _Reader) -> Relation:
    oid = reader.number(_OID)
    # An empty name means the schema pg_catalog.
    schema, name, identity = reader.name() or "pg_catalog", reader.name(), reader.letter()
    count = reader.number(_SHORT)
    if count > MAX_COLUMNS:
        raise BadMessage(f"{schema}.{name} has {count} columns; PostgreSQL allows {MAX_COLUMNS}")
    columns = tuple([_column(reader) for _ in range(count)])
    return Relation(oid=oid, schema=schema, name=name, identity=identity, columns=columns)


def _column(reader: _Reader) -> RelationColumn:
    flags, name = reader.number(_BYTE), reader.name()
    oid, modifier = reader.unpack(_TYPE)
    return RelationColumn(name=name, is_key=bool(flags & 1), type_oid=oid, type_modifier=modifier)


def _insert(reader: _Reader) -> Change:
    relation = reader.number(_OID)
    _expect(reader, "N")
    return Change(operation=Operation.CREATE, relation=relation, new=reader.cells())


def _update(reader: _Reader) -> Change:
    relation, kind = reader.number(_OID), reader.letter()
    old = None
    if kind in "KO":
        old = reader.cells()
        _expect(reader, "N")
    elif kind != "N":
        raise BadMessage(f"an update has a row of kind {kind!r}")
    return Change(
        operation=Operation.UPDATE,
        relation=relation,
        old=old,
        is_old_key_only=kind == "K",
        new=reader.cells(),
    )


def _delete(reader: _Reader) -> Change:
    relation, kind = reader.number(_OID), reader.letter()
    if kind not in "KO":
        raise BadMessage(f"a delete has a row of kind {kind!r}")
    return Change(
        operation=Operation.DELETE,
        relation=relation,
        old=reader.cells(),
        is_old_key_only=kind == "K",
    )


def _truncate(reader: _Reader) -> Truncate:
    count, _options = reader.unpack(_TRUNCATE)
    if count > MAX_TRUNCATED:
        raise BadMessage(f"{count} tables are truncated at once, more than {MAX_TRUNCATED}")
    reader.require(count * _OID.size)
    return Truncate(relations=tuple([reader.number(_OID) for _ in range(count)]))


def _origin(reader: _Reader) -> Origin:
    return Origin(lsn=reader.number(_LSN), name=reader.name())


def _ignored(kind: str) -> Callable[[_Reader], Message]:
    message = Ignored(kind=kind)
    return lambda _reader: message


def _expect(reader: _Reader, wanted: str) -> None:
    kind = reader.letter()
    if kind != wanted:
        raise BadMessage(f"a row of kind {kind!r} instead of {wanted!r}")


_BYTE: Final = Struct(">B")
_SHORT: Final = Struct(">H")
_LONG: Final = Struct(">i")
_OID: Final = Struct(">I")
_LSN: Final = Struct(">Q")
_TYPE: Final = Struct(">Ii")
_THREE_LONGS: Final = Struct(">QQq")
_KEEPALIVE: Final = Struct(">QqB")
_STATUS: Final = Struct(">cQQQqB")
_BEGIN: Final = Struct(">QqI")
_COMMIT: Final = Struct(">BQQq")
_TRUNCATE: Final = Struct(">IB")
_READERS: Final[Mapping[str, Callable[[_Reader], Message]]] = {
    "B": _begin,
    "C": _commit,
    "R": _relation,
    "I": _insert,
    "U": _update,
    "D": _delete,
    "T": _truncate,
    "O": _origin,
    "Y": _ignored("type"),
    "M": _ignored("message"),
}
