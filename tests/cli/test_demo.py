"""`./samsa demo` against a broker of ours, on its own clock."""

import time
from collections.abc import Iterator

import pytest

from cli.demo import COMMIT_S, MAX_AT_ONCE, Share, clear, create_topics, demo, playing, ticks
from cli.demo_scenes import AUDIENCES, SCENES
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.groups import Groups
from gateway.kafka.values import Position, PositionKind
from tests.cli.data_commands import Shell, shell

SECONDS = 30
# By then every group has committed twice.
COMMITTED_S = 2 * COMMIT_S + 1


def test_a_rate_is_kept_in_whole_records() -> None:
    share = Share(lambda _seconds: 2.5)

    assert [share.due(second, 1) for second in range(4)] == [2, 3, 2, 3]


def test_a_machine_that_slept_does_not_make_up_for_it() -> None:
    assert Share(lambda _seconds: 1000.0).due(0, 3600) == MAX_AT_ONCE


@pytest.fixture(scope="module")
def sh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with shell(tmp_path_factory.mktemp("broker"), mine=1) as running:
        yield running


@pytest.mark.slow
def test_the_demo_lives_and_is_taken_away_again(sh: Shell) -> None:
    connection = Connection(bootstrap=sh.bootstrap)
    admin, groups = Admin(connection), Groups(connection)
    assert create_topics(admin) == len(SCENES)
    assert create_topics(admin) == 0

    with playing(connection) as play:
        for now_s, passed_s in ticks(time.monotonic(), SECONDS):
            play.turn(now_s, passed_s)
            if now_s > COMMITTED_S and all(reading.read for reading in play.readings):
                break
        with pytest.raises(KafkaFailure, match="a demo still runs here"):
            clear(connection)

    names = [scene.topic for scene in SCENES]
    end = Position(kind=PositionKind.END)
    for topic in admin.describe(names):
        ends = admin.offsets(topic.name, [p.index for p in topic.partitions], end)
        assert sum(ends.values()) > 0
    committed = groups.offsets([audience.group for audience in AUDIENCES])
    assert all(committed[audience.group] for audience in AUDIENCES)
    # It sticks to the start, whatever it has read.
    assert set(committed["samsa-demo.ledger"].values()) == {0}

    assert "7 topics and 8 groups deleted" in sh.run(demo, "--clear").stdout
    assert [topic.name for topic in admin.topics() if not topic.is_internal] == ["mine"]
    assert "0 topics and 0 groups deleted" in sh.run(demo, "--clear").stdout


@pytest.mark.slow
def test_the_demo_ends_in_time_and_says_how_to_clear_it(sh: Shell) -> None:
    ran = sh.run(demo, "--seconds", "1")

    assert "7 topics created, 0 existed" in ran.stdout
    assert "demo --clear" in ran.stdout
