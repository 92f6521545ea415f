"""Members of groups whose worker was killed: they leave at once, and no others."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.kafka import departure
from gateway.kafka.connection import Connection
from gateway.kafka.errors import failure
from gateway.kafka.groups import Groups
from gateway.kafka.roster import Roster
from gateway.rest import departures
from gateway.rest.departures import Departures
from tests.cluster import ROOT
from tests.fakes.broker_thread import broker_beside

WAIT_S = 30
# A worker of the gateway that reads as a member of a group until it is killed.
WORKER = """
import sys
from pathlib import Path
from gateway.kafka.connection import Connection
from gateway.kafka.member import Member, Reset, Subscription
from gateway.kafka.roster import Roster
member = Member(Connection(bootstrap=sys.argv[1]), "app", reset=Reset.EARLIEST,
    commits_itself=True, roster=Roster(Path(sys.argv[2]) / "gateway-9"))
member.subscribe(Subscription(topics=("orders",)))
while not member.assignment():
    member.take(max_bytes=1, min_bytes=1, wait_s=0.1)
print("joined", flush=True)
sys.stdin.read()
"""


def looking(folder: Path, bootstrap: str = "127.0.0.1:1", own: str = "gateway-1") -> Departures:
    return Departures(
        folder / "members",
        own,
        connection=lambda: Connection(bootstrap=bootstrap),
        socket_of=lambda name: folder / f"{name}.sock",
    )


async def until(found: Departures, holds: Callable[[], bool]) -> None:
    found.begin()
    async with asyncio.timeout(WAIT_S):
        # Another thread does it.
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0)
    await found.close()


@pytest.mark.slow
def test_the_members_of_a_killed_worker_leave_their_group_at_once(tmp_path: Path) -> None:
    with broker_beside(tmp_path / "broker", topics={"orders": 2}) as broker:
        groups = Groups(Connection(bootstrap=broker.bootstrap))
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, broker.bootstrap, str(tmp_path / "members")],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"joined\n"
        worker.kill()
        worker.communicate()
        [before] = groups.describe(["app"])

        # The session of the member lasts 45 s.
        asyncio.run(
            until(
                looking(tmp_path, broker.bootstrap),
                lambda: not Roster(tmp_path / "members/gateway-9").members(),
            )
        )

        assert len(before.members) == 1
        assert "app" not in groups.find(["app"]) or groups.find(["app"])["app"].members == ()


def noted(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Note who leaves; brokers answer with these errors first."""
    left: list[str] = []
    waiting = list(answers)

    def leave(_connection: Connection, group: str, member: str) -> None:
        if waiting:
            raise failure(waiting.pop(0), group)
        left.append(member)

    monkeypatch.setattr(departure, "leave", leave)
    monkeypatch.setattr(departures, "LOOK_S", 0.01)
    return left


def test_a_worker_that_is_only_slow_keeps_its_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = noted(monkeypatch)
    for name in ("gateway-2", "gateway-3"):
        Roster(tmp_path / "members" / name).enter("app", f"of-{name}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as slow:
        slow.bind(str(tmp_path / "gateway-2.sock"))
        # It accepts nothing, as a process that is stopped.
        slow.listen(1)

        asyncio.run(until(looking(tmp_path), lambda: left == ["of-gateway-3"]))

    assert Roster(tmp_path / "members/gateway-2").members() == [("app", "of-gateway-2")]


def test_a_worker_lets_the_members_before_it_leave_and_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = noted(monkeypatch, "COORDINATOR_NOT_AVAILABLE", "GROUP_AUTHORIZATION_FAILED")
    roster = Roster(tmp_path / "members/gateway-1")
    for member in ("a/b", "c", "d"):
        roster.enter("gruppe ä", member)

    async def story() -> None:
        found = looking(tmp_path)
        found.begin()
        roster.enter("app", "new")
        async with asyncio.timeout(WAIT_S):
            while roster.members() != [("app", "new")]:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0)
        await found.close()

    asyncio.run(story())
    # The first one was asked again, and refused for good then: its session ends it.
    assert left == ["c", "d"]


@pytest.mark.slow
def test_a_member_that_is_gone_already_is_no_failure(tmp_path: Path) -> None:
    with broker_beside(tmp_path) as broker:
        connection = Connection(bootstrap=broker.bootstrap)

        departure.leave(connection, "never", "gone")
