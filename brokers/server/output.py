"""Sends the pending bytes and file ranges of one connection, in order, without copying either.

Knows a socket and no requests. Small responses are sent in one call; a header is sent with
`MSG_MORE`, so that it shares a packet with the file bytes that the kernel sends after it.
One turn sends no more than its share, so that a reader of gigabytes does not starve the others.
"""

import os
import socket
from collections.abc import Iterator, Sized
from typing import Final, TypeAlias

from brokers.server.file_range import FileRange, release_all

# Bytes that one connection may send before others have their turn: about half a ms of work.
TURN_BYTES: Final = 1024 * 1024
# Up to this size buffers are joined, which costs less than a gathering call; small pieces of files
# too, since reading one costs less than separate calls for the bytes before it, the piece itself,
# and the bytes after it.
JOINED_BYTES: Final = 65_536
# Buffers of one gathering call; the kernel allows 1024, but more than this gains nothing.
MAX_GATHERED: Final = 64

_Chunk: TypeAlias = "bytes | bytearray | memoryview"


class FileShrank(Exception):
    """A log file ended before the range that a response announced; the connection is lost."""


class Output:
    """The queue of one connection. `size` counts the unsent bytes.

    `scratch` is for small responses with file bytes; all connections of a loop may share it.
    """

    __slots__ = ("_has_files", "_items", "_scratch", "_sent", "_socket", "size")

    def __init__(self, sock: socket.socket, scratch: memoryview) -> None:
        self.size = 0
        self._socket = sock
        self._scratch = scratch
        self._items: list[Sized] = []
        self._sent = 0  # bytes of the first item that were sent
        self._has_files = False  # maybe; until the queue is empty

    def add(self, buffers: list[Sized]) -> None:
        """Append buffers, which must not be empty: no response has empty ones."""
        self._items += buffers
        size = 0
        for buffer in buffers:
            if type(buffer) is FileRange:
                self._has_files = True
            size += len(buffer)
        self.size += size

    def send_at_once(self, buffers: list[Sized]) -> int:
        """Do `add` and `drain` for an empty queue: most responses are never queued.

        Errors are those of `drain`; the buffers' files are released then, or by `close`.
        """
        try:
            data = _gathered(buffers, self._scratch)
            count = self._socket.send(data) if data is not None else 0
        except BlockingIOError:
            count = 0
        except BaseException:  # any error is raised again, after the files are released
            release_all(buffers)
            raise
        if data is not None and count == len(data):
            for item in buffers:
                if type(item) is FileRange:
                    item.release()
            return count
        self.add(buffers)
        if data is None:
            return self.drain()
        self._advance(count)
        return count

    def drain(self) -> int:
        """Send what the socket accepts and the turn allows; return the number of bytes.

        OSError if the peer is gone, FileShrank if a file is too short.
        """
        items, size = self._items, self.size
        if self._sent or size > JOINED_BYTES:
            return self._drain_in_parts()
        # The common cases: all responses of a turn in one call.
        data: _Chunk
        if self._has_files:
            gathered = _gathered(items, self._scratch)
            assert gathered is not None, f"{size} bytes do not fit where {JOINED_BYTES} do"
            data = gathered
        else:
            data = items[0] if len(items) == 1 else b"".join(items)  # type: ignore[arg-type, assignment]
        try:
            count = self._socket.send(data)
        except BlockingIOError:
            return 0
        if count == size and not self._has_files:
            items.clear()
            self.size = 0
        else:
            self._advance(count)
        return count

    def _drain_in_parts(self) -> int:
        left = TURN_BYTES
        try:
            while self._items and left > 0:
                first = self._items[0]
                if isinstance(first, FileRange):
                    wanted = min(len(first) - self._sent, left)
                    count = self._send_file(first, wanted)
                else:
                    wanted, count = self._send_bytes(left)
                left -= count
                self._advance(count)
                if count < wanted:
                    break
        except BlockingIOError:
            pass
        return TURN_BYTES - left

    def _send_file(self, piece: FileRange, length: int) -> int:
        count = os.sendfile(self._socket.fileno(), piece.fd, piece.position + self._sent, length)
        if count == 0:
            raise FileShrank(f"{length} bytes at {piece.position + self._sent} are missing")
        return count

    def _send_bytes(self, left: int) -> tuple[int, int]:
        """Send the bytes before the next file range; return how many were tried, and sent."""
        chunks: list[memoryview] = []
        tried = 0
        flags = 0
        for chunk in self._chunks():
            if isinstance(chunk, FileRange) or tried == left or len(chunks) == MAX_GATHERED:
                flags = socket.MSG_MORE
                break
            part = memoryview(chunk)[: left - tried]
            chunks.append(part)
            tried += len(part)
        return tried, self._socket.sendmsg(chunks, (), flags)

    def _chunks(self) -> Iterator["_Chunk | FileRange"]:
        first = self._items[0]
        yield memoryview(first)[self._sent :]  # type: ignore[arg-type]
        yield from self._items[1:]  # type: ignore[misc]

    def _advance(self, count: int) -> None:
        """Remove sent bytes from the queue, and release files that were sent completely."""
        self.size -= count
        done = 0
        self._sent += count
        for item in self._items:
            if self._sent < len(item):
                break
            self._sent -= len(item)
            done += 1
            if isinstance(item, FileRange):
                item.release()
        del self._items[:done]
        if not self._items:
            self._has_files = False

    def close(self) -> None:
        """Drop everything and release every file."""
        for item in self._items:
            if isinstance(item, FileRange):
                item.release()
        self._items.clear()
        self.size = self._sent = 0


def _gathered(items: list[Sized], scratch: memoryview) -> memoryview | None:
    """Copy all of these, with the bytes of their files, into `scratch`; None if they do not fit."""
    end, room = 0, len(scratch)
    for item in items:
        start, end = end, end + len(item)
        if end > room:
            return None
        if type(item) is FileRange:
            count = os.preadv(item.fd, (scratch[start:end],), item.position)
            if count != end - start:
                raise FileShrank(
                    f"{end - start - count} bytes at {item.position + count} are missing"
                )
        else:
            scratch[start:end] = item  # type: ignore[call-overload]
    return scratch[:end]
