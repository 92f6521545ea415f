"""A program that behaves as components do, or as they should not; the tests' supervisors run it.

`python fake_component.py MODE…`: modes add up, and are read in the order below.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress

MODES = frozenset(sys.argv[1:])
STOPS = {signal.SIGTERM, signal.SIGINT}
BEAT_SECONDS = 0.2
PIPE = int(os.environ["SAMSA_READY_FD"])


def say(**said: object) -> None:
    os.write(PIPE, f"{json.dumps({**said, 'beats': True})}\n".encode())


def beat() -> None:
    if "silent" not in MODES:
        with suppress(OSError):
            os.write(PIPE, b"\n")


def listening() -> socket.socket:
    path = next(mode for mode in MODES if mode.endswith(".sock"))
    with suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    return listener


def serve_health(listener: socket.socket) -> None:
    """Answer every request with 200 on a socket of its own."""
    with listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                is_ping = connection.recv(4096).startswith(b"PING")
                good = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
                connection.sendall(b"+PONG\r\n" if is_ping else good)


def main() -> None:
    # Blocked rather than handled: sigwait below takes them, also those that come early.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    sys.stderr.write('{"event": "fake.started", "level": "info"}\n')
    if "complain" in MODES:
        sys.stderr.write("the agent is on holiday\n")
    if "crash" in MODES:
        sys.stderr.write("the disk is made of cheese\n")
        sys.exit(3)
    if "bad-disk" in MODES:
        sys.exit(5)
    if "offspring" in MODES:
        # Ignores what would stop it, and keeps the output open.
        subprocess.Popen(
            [sys.executable, "-c", "import signal; signal.sigwait({signal.SIGUSR1})"],
            env=dict(os.environ),
        )
    if "runaway" in MODES:
        # In a session of its own, as a grandchild whose parent is gone.
        code = "import subprocess as s; s.Popen(['sleep', '60'], start_new_session=True)"
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
    if "http" in MODES:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        serve_health(listening())
    if "beside" in MODES:
        threading.Thread(target=serve_health, args=(listening(),), daemon=True).start()
    if "silent" not in MODES:
        port = int(os.environ.get("SAMSA_PORT", "0")) or 20_000 + os.getpid() % 10_000
        founded_on = "host-a" if "joined" in MODES else ""
        say(id=7, host="127.0.0.1", port=port, inspection_port=0, founded_on=founded_on)
    ends_by = {signal.SIGUSR1} if "stubborn" in MODES else STOPS
    while signal.sigtimedwait(ends_by, BEAT_SECONDS) is None:
        beat()


if __name__ == "__main__":
    main()
