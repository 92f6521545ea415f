"""A connection to a server of Valkey's protocol, and the parser of its URL.

Replaces the common client, whose modules take 19 MB in every worker for six commands.
"""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import hiredis

DEFAULT_PORT: Final = 6379
BLOCK_BYTES: Final = 65_536
# Others may have stored values of any size; our own answers are a few megabytes at most.
MAX_ANSWER_BYTES: Final = 16 << 20
SCHEMES: Final = frozenset({"redis", "rediss", "valkey", "valkeys", "unix", "redis+socket"})
# Returned by `get` until a whole answer has arrived.
NOTHING: Final = object()


class LinkError(Exception):
    """The server refused, or sent an invalid answer."""


class BadAddress(ValueError):
    """An invalid server URL; the message never contains it, since it may have a password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address of a server. A path is that of a unix socket."""

    host: str = ""
    port: int = DEFAULT_PORT
    path: str = ""
    has_tls: bool = False
    user: str = ""
    password: str = field(default="", repr=False)
    database: int = 0


def address_of(url: str) -> Address:
    """Parse redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], rediss:// for TLS, or unix://PATH."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise BadAddress("it begins with none of redis://, rediss:// and unix://")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if parts.scheme in {"unix", "redis+socket"}:
        if not parts.path:
            raise BadAddress("unix:// is followed by the path of a socket")
        return Address(path=unquote(parts.path), user=user, password=password)
    database = parts.path.strip("/") or "0"
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise BadAddress("its port is not a number between 1 and 65535") from None
    if not parts.hostname or not database.isdecimal():
        raise BadAddress("it needs a host, and its path is the number of a database")
    return Address(
        host=parts.hostname,
        port=port,
        has_tls=parts.scheme in {"rediss", "valkeys"},
        database=int(database),
        user=user,
        password=password,
    )


class Link:
    """For one task at a time. After an error, or a cancelled wait, it can only be closed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._parser = hiredis.Reader(notEnoughData=NOTHING)

    async def ask(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        """Send commands together, and return their answers in order."""
        self.write(commands)
        await self._writer.drain()
        return [await self.next() for _ in commands]

    def write(self, commands: Sequence[Sequence[str | bytes | int]]) -> None:
        """Send commands of few bytes; `next` returns their answers."""
        self._writer.write(b"".join(map(packed, commands)))

    async def next(self) -> Any:  # noqa: ANN401 - what a server says is bytes, numbers and lists
        """Return the next answer or message."""
        waiting = 0
        while (found := self._parsed()) is NOTHING:
            block = await self._reader.read(BLOCK_BYTES)
            waiting += len(block)
            if not block:
                raise LinkError("the server has closed the connection")
            if waiting > MAX_ANSWER_BYTES:
                raise LinkError(f"an answer has more than {MAX_ANSWER_BYTES} bytes")
            self._parser.feed(block)
        if isinstance(found, hiredis.ReplyError):
            raise LinkError(str(found))
        return found

    def close(self) -> None:
        self._writer.close()

    def _parsed(self) -> Any:  # noqa: ANN401 - as `next`
        try:
            return self._parser.gets()
        except hiredis.HiredisError as error:
            raise LinkError(f"the server speaks another protocol: {error}") from None


def packed(words: Sequence[str | bytes | int]) -> bytes:
    # The stub allows only tuples with one element.
    command: tuple[Any, ...] = tuple(words)
    return bytes(hiredis.pack_command(command))


async def opened(address: Address) -> Link:
    """Connect and log in."""
    reader, writer = (
        await asyncio.open_unix_connection(address.path)
        if address.path
        else await asyncio.open_connection(
            address.host, address.port, ssl=True if address.has_tls else None
        )
    )
    link = Link(reader, writer)
    login = (*([address.user] if address.user else []), address.password)
    commands: list[tuple[str | int, ...]] = [
        *([("AUTH", *login)] if address.password else []),
        *([("SELECT", address.database)] if address.database else []),
    ]
    with ExitStack() as failing:
        # Close it even after a cancelled wait: nothing else has a reference.
        failing.callback(link.close)
        await link.ask(commands)
        failing.pop_all()
    return link
