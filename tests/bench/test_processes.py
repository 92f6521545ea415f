"""A process is seen from outside as it sees itself."""

import os
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bench.measure import rss_bytes
from bench.processes import Process, family

ME = Process(os.getpid())


def test_cpu_time_is_what_the_process_itself_counts() -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seen = ME.cpu_seconds()

    assert seen == pytest.approx(usage.ru_utime + usage.ru_stime, abs=0.05)
    assert seen == pytest.approx(time.process_time(), abs=0.05)


def test_memory_is_what_is_resident() -> None:
    assert ME.rss_bytes() == pytest.approx(rss_bytes(), rel=0.05)


def test_what_is_shared_counts_in_part() -> None:
    mine = ME.pss_bytes()

    assert 1_000_000 < mine < 1.05 * ME.rss_bytes()


def test_every_open_file_is_a_descriptor(tmp_path: Path) -> None:
    before = ME.descriptors()

    with (tmp_path / "file").open("wb"):
        assert ME.descriptors() == before + 1

    assert ME.descriptors() == before


def test_every_thread_is_seen() -> None:
    before = ME.threads()
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()

    during = ME.threads()

    end.set()
    thread.join()
    assert during == before + 1


def test_a_port_is_seen_while_it_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        assert port in ME.listening_ports()

    assert port not in ME.listening_ports()


def test_a_family_has_children_and_their_children() -> None:
    # Says the number of its own child, which then waits for its input to end.
    code = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'input()']);"
        "print(child.pid, flush=True); child.wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        grandchild = int(child.stdout.readline())

        assert family(child.pid) == {child.pid, grandchild}
        assert family(os.getpid()) >= {os.getpid(), child.pid, grandchild}
        assert Process(grandchild).parent() == child.pid
        assert Process(child.pid).command()[-1] == code
        child.stdin.write("\n")


def test_the_environment_is_the_one_of_the_start() -> None:
    environment = {"SAMSA_BIND": "127.0.0.1", "EMPTY": "", "WITH": "a=b"}
    code = "print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as child:
        assert child.stdout is not None
        # It runs, so the kernel has given it its environment.
        child.stdout.readline()

        seen = Process(child.pid).environment()

        child.communicate(b"\n")
    assert seen == environment
