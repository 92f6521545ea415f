"""kill -9 of a coordinator: groups and their offsets are there again, members keep their place.

Raw commits of many groups show that nothing acknowledged is lost, in many rounds and also where the
machine loses its power; members of real clients show that a group goes on as if nothing had been.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient

from brokers.protocol.errors import ErrorCode
from tests.cluster import Cluster, running_cluster
from tests.crash.commits import Committer, judge
from tests.crash.machine import Machine, running_machine
from tests.interop.group_story import (
    CONFLUENT,
    CONFLUENT_CONSUMER,
    KAFKA_PYTHON,
    PER_SECOND,
    Kind,
    Story,
    fill,
)
from tests.interop.homes import BROKERS, ENVIRONMENT
from tests.oracles.confluent_client import QUIET, SECONDS, create_topic
from tests.raw_groups import Coordinated, GroupError, coordinator, patiently
from tests.scale import count

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    # One worker for all of the file, so that its cluster runs once.
    pytest.mark.xdist_group("groups-kill"),
]

SEED = 20_261_204
GROUPS = 64
ROUNDS = count(2, 2, long=20)
POWER_CUTS = count(2, 2, long=10)
LOADS = count(2, 2, long=10)
# Tries of the build that lies; the cut spares unsynced bytes now and then.
LYING_ROUNDS = 5
# A round with fewer acknowledgements before the kill shows nothing.
LEAST_ACKNOWLEDGED = 500
BUSY_SECONDS = 60
TOPIC, PARTITIONS = "orders", 3
PLACES = tuple((TOPIC, index) for index in range(PARTITIONS))
# Of a story: three members read them in six seconds, if nothing happens.
STORY_RECORDS = 3 * 6 * PER_SECOND
Report = Callable[[str], None]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("groups-kill") / "home"
    with running_cluster(home, brokers=BROKERS, environment=ENVIRONMENT) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap, **QUIET})
        create_topic(admin, TOPIC, PARTITIONS, {})
        yield started


def coordinating(cluster: Cluster, group: str) -> str:
    """Return the name of the process that coordinates a group."""
    number, _address = coordinator(cluster.bootstrap, group)
    return f"broker-{number}"


def committers(bootstrap: str, name: str) -> list[Committer]:
    return [Committer(bootstrap, f"{name}-{number}", PLACES) for number in range(GROUPS)]


def keep_busy(busy: list[Committer], rng: Random) -> int:
    """Let all groups commit until a random number is acknowledged; return how many were."""
    for each in busy:
        each.start()
    before = sum(each.ledger.acknowledged for each in busy)
    enough = LEAST_ACKNOWLEDGED + rng.randrange(LEAST_ACKNOWLEDGED)
    deadline = time.monotonic() + BUSY_SECONDS
    while (done := sum(each.ledger.acknowledged for each in busy) - before) < enough:
        assert time.monotonic() < deadline, f"only {done} commits in {BUSY_SECONDS} s"
        threading.Event().wait(0.005)
    return done


# -- what was acknowledged -------------------------------------------------------------------------


def test_a_killed_coordinator_keeps_every_commit_it_acknowledged(
    cluster: Cluster, report: Report
) -> None:
    rng = Random(SEED)
    busy = committers(cluster.bootstrap, "kill")
    for number in range(ROUNDS):
        victim = coordinating(cluster, rng.choice(busy).group)

        done = keep_busy(busy, rng)
        killed = cluster.kill(victim)
        away = cluster.wait_for_restart(victim, killed)
        for each in busy:
            each.stop()

        assert [wrong for each in busy if (wrong := judge(each))] == []
        report(
            f"round {number}, seed {SEED}: {done} commits of {GROUPS} groups acknowledged, "
            f"{victim} back after {away:.1f} s"
        )


def play_power_cut(machine: Machine, busy: list[Committer], rng: Random) -> tuple[int, list[str]]:
    """Commit, cut the power and start again; return the commits, and what is wrong afterwards."""
    done = keep_busy(busy, rng)
    machine.lose_power(rng)
    for each in busy:
        each.stop()
    machine.start()
    return done, [wrong for each in busy if (wrong := judge(each))]


def with_topic(machine: Machine) -> list[Committer]:
    create_topic(
        AdminClient({"bootstrap.servers": machine.bootstrap, **QUIET}), TOPIC, PARTITIONS, {}
    )
    return committers(machine.bootstrap, "power")


def test_a_power_cut_takes_no_commit_that_was_acknowledged(tmp_path: Path, report: Report) -> None:
    rng = Random(SEED)
    with running_machine(tmp_path) as machine:
        busy = with_topic(machine)
        for number in range(POWER_CUTS):
            done, wrong = play_power_cut(machine, busy, rng)

            assert wrong == []
            report(f"power cut {number}, seed {SEED}: {done} commits acknowledged before it")


def test_commits_that_are_answered_before_fdatasync_are_found_out(
    tmp_path: Path, report: Report
) -> None:
    rng, told = Random(SEED), list[str]()
    for number in range(LYING_ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        with running_machine(folder, lies=True) as machine:
            _done, told = play_power_cut(machine, with_topic(machine), rng)
        if told:
            break

    report(f"seed {SEED}: {len(told)} of {GROUPS} groups; {told[:1]}")
    assert told, f"{LYING_ROUNDS} power cuts took no commit that was never synced"
    assert all(wrong.startswith("lost: ") for wrong in told)


def test_a_coordinator_that_is_killed_while_it_loads_loses_nothing(
    cluster: Cluster, report: Report
) -> None:
    rng = Random(SEED)
    busy = committers(cluster.bootstrap, "load")
    keep_busy(busy, rng)
    for each in busy:
        each.stop()
    met: Counter[str] = Counter()
    for _ in range(LOADS):
        group = rng.choice(busy).group
        victim = coordinating(cluster, group)
        _number, address = coordinator(cluster.bootstrap, group)

        killed = cluster.kill(victim)
        met[first_answer(address, group)] += 1
        again = cluster.kill(victim)
        cluster.wait_for_restart(victim, again)

        assert again != killed
        assert [wrong for each in busy if (wrong := judge(each))] == []
    report(f"killed again at the first answer: {dict(met)}")


def first_answer(address: str, group: str) -> str:
    """Wait until a broker answers about a group at all, whatever it says, and return that."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            opened = Coordinated(address, group, finds=False)
        except OSError:
            assert time.monotonic() < deadline, f"nobody listens at {address}"
            continue
        try:
            opened.offsets()
        except GroupError as error:
            return error.code.name
        except OSError:
            continue
        finally:
            opened.close()
        return "the offsets"


# -- members ---------------------------------------------------------------------------------------


def test_members_keep_their_place_when_a_join_was_on_its_way(cluster: Cluster) -> None:
    with ExitStack() as stack:

        def connect() -> Coordinated:
            return stack.enter_context(closing(Coordinated(cluster.bootstrap, "joining")))

        opened = connect()
        joined = patiently(lambda: opened.join([TOPIC]))
        member_id, generation = joined.member_id, joined.generation_id
        opened.sync(member_id, generation, {member_id: {TOPIC: range(PARTITIONS)}})
        opened.commit(dict.fromkeys(PLACES, 5), member_id=member_id, generation=generation)
        newcomer = connect()
        newcomer.send_join([TOPIC])
        wait_for_code(
            lambda: opened.heartbeat(member_id, generation), ErrorCode.REBALANCE_IN_PROGRESS
        )

        victim = coordinating(cluster, "joining")
        cluster.wait_for_restart(victim, cluster.kill(victim))
        with pytest.raises(OSError):
            newcomer.joined()
        again = connect()
        # A heartbeat is answered blindly while the group is loaded, offsets are not.
        assert patiently(again.offsets) == dict.fromkeys(PLACES, 5)

        # The one who was in the group goes on in its generation.
        again.heartbeat(member_id, generation)
        again.commit(dict.fromkeys(PLACES, 6), member_id=member_id, generation=generation)
        # The one who was not comes again, and the group has them both.
        newcomer = connect()
        newcomer.send_join([TOPIC])
        wait_for_code(
            lambda: again.heartbeat(member_id, generation), ErrorCode.REBALANCE_IN_PROGRESS
        )
        both = again.join([TOPIC], member_id=member_id)
        assert both.generation_id == generation + 1
        assert newcomer.joined().generation_id == generation + 1
        assert len(both.members) == 2
        assert again.offsets() == dict.fromkeys(PLACES, 6)


def wait_for_code(ask: Callable[[], object], code: ErrorCode) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            ask()
        except GroupError as error:
            assert error.code is code  # noqa: PT017 - any other is no answer to wait behind
            return
        assert time.monotonic() < deadline, f"never {code.name}"


@pytest.mark.interop
@pytest.mark.parametrize(
    "kind", [CONFLUENT, CONFLUENT_CONSUMER, KAFKA_PYTHON], ids=lambda kind: kind.name
)
def test_a_group_goes_on_when_its_coordinator_is_killed(
    cluster: Cluster, kind: Kind, tmp_path: Path, report: Report
) -> None:
    topic = f"story-{kind.name}"
    ends = fill(cluster.bootstrap, topic, STORY_RECORDS)
    # A client whose session is over joins again as another member, and a broker may be away for
    # nearly as long where the machine is busy.
    patient = replace(kind, session_ms=5 * kind.session_ms)
    story = Story(patient, tmp_path, cluster.bootstrap, topic=topic, ends=ends)
    members: list[set[str]] = []

    def look() -> None:
        with closing(Coordinated(cluster.bootstrap, story.group)) as opened:
            members.append(patiently(opened.members))

    def fault() -> None:
        look()
        victim = coordinating(cluster, story.group)
        away = cluster.wait_for_restart(victim, cluster.kill(victim))
        report(f"{kind.name}: {victim} was away for {away:.1f} s")
        look()

    verdict = story.play_through(fault)

    report(f"{kind.name}: seconds of each owner, by partition\n{verdict.table()}")
    assert verdict.complaints == ()
    assert verdict.owners() == {"m1", "m2", "m3"}
    # They are the members that they were before.
    assert len(members[0]) == 3
    assert members[0] == members[1]
