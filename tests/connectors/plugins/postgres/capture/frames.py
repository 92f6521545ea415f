"""Messages of pgoutput as a server writes them, for tests of what reads them."""

from struct import pack

from connectors.plugins.postgres.capture.pgoutput import EPOCH_2000_US, Payload

COMMITTED_US = EPOCH_2000_US + 1_000_000


def name(text: str) -> bytes:
    return text.encode() + b"\0"


def begin(final_lsn: int, *, xid: int = 7) -> bytes:
    return b"B" + pack(">QqI", final_lsn, 1_000_000, xid)


def commit(lsn: int, end_lsn: int) -> bytes:
    return b"C" + pack(">BQQq", 0, lsn, end_lsn, 1_000_000)


def relation(oid: int, table: str, *columns: str, schema: str = "public") -> bytes:
    """Describe a table; the first of its columns is the key, and all are texts."""
    told = b"".join(
        pack(">B", index == 0) + name(column) + pack(">Ii", 25, -1)
        for index, column in enumerate(columns)
    )
    head = b"R" + pack(">I", oid) + name(schema) + name(table)
    return head + b"d" + pack(">H", len(columns)) + told


def row(*cells: str | None) -> bytes:
    """Write a row; "?" stands for a large value that was left alone."""
    told = b"".join(
        b"n"
        if cell is None
        else b"u"
        if cell == "?"
        else b"t" + pack(">i", len(cell.encode())) + cell.encode()
        for cell in cells
    )
    return pack(">H", len(cells)) + told


def insert(oid: int, *cells: str | None) -> bytes:
    return b"I" + pack(">I", oid) + b"N" + row(*cells)


def update(oid: int, *cells: str | None, old: bytes = b"") -> bytes:
    return b"U" + pack(">I", oid) + old + b"N" + row(*cells)


def delete(oid: int, *cells: str | None) -> bytes:
    return b"D" + pack(">I", oid) + b"K" + row(*cells)


def truncate(*oids: int) -> bytes:
    return b"T" + pack(">IB", len(oids), 0) + b"".join(pack(">I", oid) for oid in oids)


def at(lsn: int, body: bytes) -> Payload:
    return Payload(lsn=lsn, wal_end=lsn, body=body)
