"""What the demo shows, without a cluster."""

import json
import struct
from random import Random
from types import SimpleNamespace

import pytest

from brokers.cluster.topic_configs import check, check_together
from brokers.cluster.topic_names import check_topic_name
from cli import demo
from cli.demo_scenes import AUDIENCES, FIRST_ORDER, PREFIX, SCENES, Scene, bursts, order, wave
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, failure


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.topic)
def test_a_scene_is_a_topic_that_a_cluster_takes(scene: Scene) -> None:
    check_topic_name(scene.topic)
    for key, value in scene.configs.items():
        check(key, value)
    check_together(scene.configs)

    assert scene.topic.startswith(PREFIX)
    chance = Random(1)
    records = [scene.record(chance, number) for number in range(200)]
    if scene.configs.get("cleanup.policy") == "compact":
        assert all(record.key is not None for record in records)
        assert any(record.value is None for record in records)
    assert all(len(record.value or b"") < 1024 for record in records)
    assert all(scene.rate(second) > 0 for second in range(600))


def test_groups_read_topics_of_the_demo_and_have_names_of_their_own() -> None:
    topics = {scene.topic for scene in SCENES}

    assert len({audience.group for audience in AUDIENCES}) == len(AUDIENCES)
    for audience in AUDIENCES:
        assert audience.group.startswith(PREFIX)
        assert set(audience.topics) <= topics


def test_rates_swing_between_their_bounds() -> None:
    swing = wave(10, 90, period_s=60)
    burst = bursts(5, 120, every_s=45, for_s=8)

    assert (swing(0), swing(30), round(swing(60))) == (10, 90, 10)
    assert [burst(second) for second in (0, 36, 37, 44, 45)] == [5, 5, 120, 120, 5]


def test_an_order_has_an_id_that_no_float_holds() -> None:
    [first, second] = [
        json.loads(order(Random(2), number).value or b"")["order"]["id"] for number in (0, 1)
    ]

    assert (first, second) == (FIRST_ORDER, FIRST_ORDER + 1)
    assert struct.pack(">d", first) == struct.pack(">d", FIRST_ORDER - 1)


def test_demo_of_a_cluster_that_stays_away_makes_no_client_and_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]

    def no_cluster(_connection: Connection) -> object:
        raise failure("_TRANSPORT", "cluster 127.0.0.1:1")

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(demo, "Admin", no_cluster)
    monkeypatch.setattr(demo, "playing", None)
    monkeypatch.setattr(demo, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))

    with pytest.raises(KafkaFailure):
        demo.run(Connection(bootstrap="127.0.0.1:1"), None)

    assert demo.GIVE_UP_S < clock[0] <= demo.GIVE_UP_S + 2 * demo.AGAIN_S
