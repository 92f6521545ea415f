"""What the kernel alone takes: a loopback socket and a write to the page cache, and no broker.

Speaks only as much of the protocol as to know where a request ends, by the size of the first one,
which is that of all on a connection; each is written to a file as it came and answered by a few
bytes. No broker on this machine can do a request for less, so its figures stand beside the
broker's. With `synced` a thread brings the file to the disk before it answers, since whoever serves
others cannot wait for the disk itself.

`python -m bench.floor FOLDER [synced]` prints its port.
"""

import os
import select
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

RECEIVE_BYTES = 256 * 1024
ANSWER = (60).to_bytes(4, "big") + bytes(60)
# A log grows: a write behind its end costs twice what one over pages that are there does. Here the
# file is emptied, so that the pages it takes next are warm ones.
FILE_BYTES = 1024 * 2**20
BACKLOG = 128


class Sink:
    """One connection: the size of its requests, and the bytes of those that are not whole yet."""

    __slots__ = ("received", "size", "socket")

    def __init__(self, accepted: socket.socket) -> None:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = accepted
        self.size = self.received = 0

    def took(self, part: memoryview) -> bytes:
        """The answers to the requests that end in what has come."""
        if self.size == 0:
            self.size = int.from_bytes(part[:4], "big") + 4
        whole, self.received = divmod(self.received + len(part), self.size)
        return ANSWER * whole


def sync_and_answer(file: int, waiting: "SimpleQueue[tuple[socket.socket, bytes]]") -> None:
    """The thread of the synced form: all that came during one sync go with the next."""
    while True:
        together = [waiting.get()]
        with suppress(Empty):
            while True:
                together.append(waiting.get_nowait())
        os.fdatasync(file)
        for sock, answers in together:
            sock.send(answers)


def serve(folder: Path, *, is_synced: bool) -> None:
    """Answers until the parent ends it."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    buffer = memoryview(bytearray(RECEIVE_BYTES))
    file = os.open(folder / "floor", os.O_RDWR | os.O_CREAT)
    os.ftruncate(file, 0)
    waiting: SimpleQueue[tuple[socket.socket, bytes]] = SimpleQueue()
    if is_synced:
        threading.Thread(target=sync_and_answer, args=(file, waiting), daemon=True).start()
    sinks: dict[int, Sink] = {}
    position = 0
    while True:
        for fd, _event in poll.poll():
            if fd == listener.fileno():
                sink = Sink(listener.accept()[0])
                sinks[sink.socket.fileno()] = sink
                poll.register(sink.socket, select.EPOLLIN)
                continue
            sink = sinks[fd]
            count = sink.socket.recv_into(buffer)
            if count == 0:
                poll.unregister(fd)
                sinks.pop(fd).socket.close()
                continue
            os.pwrite(file, buffer[:count], position)
            position += count
            if position >= FILE_BYTES:
                os.ftruncate(file, 0)
                position = 0
            answers = sink.took(buffer[:count])
            if answers and is_synced:
                waiting.put((sink.socket, answers))
            elif answers:
                sink.socket.send(answers)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), is_synced="synced" in sys.argv[2:])
