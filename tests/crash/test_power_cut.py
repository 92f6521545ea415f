"""A broker's machine loses power during produce: what was acknowledged is on the disk.

The file layer drops, tears or keeps at random whatever was not synced when the process died. A
build that answers before fdatasync is put through the same, to show that the test would see it.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient

from tests.crash.machine import Machine, running_machine
from tests.crash.traffic import PARTITIONS, Traffic, judge
from tests.interop.clients.confluent import ConfluentClient
from tests.oracles.confluent_client import QUIET, create_topic
from tests.scale import count

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SEED = 20_261_121
ROUNDS = count(2, 3, long=10)
# Tries of the build that lies; the cut spares unsynced bytes now and then.
LYING_ROUNDS = 5
LEAST_ACKNOWLEDGED = 10_000
# Written in the last moment before the fault, and while the broker is away.
LAST, MEANWHILE = 2_000, 3_000


def play_round(machine: Machine, topic: str, rng: Random, *, is_idempotent: bool) -> str:
    """Write, cut the power, go on, judge; return what happened in a line."""
    admin = AdminClient({"bootstrap.servers": machine.bootstrap, **QUIET})
    create_topic(admin, topic, len(PARTITIONS), {})
    traffic = Traffic(machine.bootstrap, topic, is_idempotent=is_idempotent)
    enough = LEAST_ACKNOWLEDGED + rng.randrange(5_000)

    rate = traffic.write_until_acknowledged(enough)
    traffic.write(LAST)
    acknowledged, in_flight = len(traffic.acknowledged), traffic.in_flight
    machine.lose_power(rng)
    traffic.write(MEANWHILE)
    machine.start()
    traffic.finish()

    assert in_flight > 0
    judge(traffic, ConfluentClient().read(machine.bootstrap, topic, PARTITIONS))
    admin.delete_topics([topic])[topic].result()
    return f"{acknowledged} acknowledged and {in_flight} in flight at {rate:.0f} MB/s"


def test_a_power_cut_takes_nothing_that_was_acknowledged(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    rng = Random(SEED)
    with running_machine(tmp_path) as machine:
        for number in range(ROUNDS):
            told = play_round(machine, f"round-{number}", rng, is_idempotent=number % 3 != 2)
            report(f"round {number}, seed {SEED}: {told}")


def test_a_build_that_answers_before_fdatasync_is_found_out(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    rng = Random(SEED)
    told = []
    for number in range(LYING_ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        told.append(complaint_of_a_round(folder, rng))
        if told[-1] is not None:
            break

    report(f"round {len(told) - 1}, seed {SEED}: {told[-1]}")
    assert told[-1] is not None, f"{LYING_ROUNDS} power cuts took nothing that was never synced"
    assert told[-1].startswith("lost: record")


def complaint_of_a_round(folder: Path, rng: Random) -> str | None:
    """Let a lying build lose its power, and return what the judge says of it."""
    with running_machine(folder, lies=True) as machine:
        try:
            # A plain producer: an idempotent one would notice the gap itself.
            play_round(machine, "round", rng, is_idempotent=False)
        except AssertionError as error:
            return str(error).splitlines()[0]
    return None
