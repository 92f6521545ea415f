"""A port that was claimed stays the claimant's, while its server is away too."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bench import ports
from bench.ports import PORTS, claim_port

ROOT = Path(__file__).parents[2]


def test_claimed_ports_are_free_and_differ() -> None:
    claimed = [claim_port() for _ in range(20)]

    assert len(set(claimed)) == 20
    for port in claimed:
        socket.create_server(("127.0.0.1", port)).close()


def test_the_kernel_gives_none_of_them_away() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])

    assert PORTS.stop <= first


def test_another_process_does_not_get_a_claimed_port(monkeypatch: pytest.MonkeyPatch) -> None:
    port = claim_port()
    program = (
        "from bench import ports\n"
        f"ports.PORTS = range({port}, {port} + 1)\n"
        "ports.MAX_TRIES = 1\n"
        "ports.claim_port()"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert "AssertionError" in told.stderr
    monkeypatch.setattr(ports, "PORTS", range(port, port + 1))
    monkeypatch.setattr(ports, "MAX_TRIES", 1)
    with pytest.raises(AssertionError, match="end what holds them"):
        claim_port()
