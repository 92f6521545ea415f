"""`__consumer_offsets` between us and Apache Kafka: its formatters read ours, and we load its own.

The broker and its tools come by Maven, so this file is an extra.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from brokers.storage import names
from tests.cluster import Cluster, running_cluster
from tests.extras import requires
from tests.interop.clients.group_stage import (
    COMMITTED,
    INSTANCE,
    OTHER,
    PARTITIONS,
    READ,
    Stage,
    set_up,
)
from tests.interop.stories import segment_paths
from tests.oracles.confluent_client import QUIET, create_topic
from tests.oracles.dump_log import dump
from tests.oracles.kafka_broker import KafkaBroker
from tests.raw_groups import Coordinated, Place, patiently

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    # One worker for all of the file, so that its brokers run once.
    pytest.mark.xdist_group("maven-groups"),
    requires("java", "maven-kafka"),
]

FOLDER = names.partition_folder("__consumer_offsets", 0)
SETTINGS = {
    "SAMSA_DEFAULTS": json.dumps(
        {
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
        }
    )
}
STAGES: tuple[Stage, ...] = tuple(stage for stage in Stage if stage is not Stage.ABSENT)


@contextmanager
def ours(home: Path) -> Iterator[Cluster]:
    with running_cluster(home, environment=SETTINGS) as cluster:
        yield cluster


def prepare(bootstrap: str) -> None:
    """Create the topics that the stages speak of, and the one of all groups."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for topic in (READ, OTHER):
        create_topic(admin, topic, PARTITIONS, {})
    set_up(bootstrap, "first", Stage.SIMPLE).close()


def set_all_up(bootstrap: str) -> None:
    for stage in STAGES:
        set_up(bootstrap, stage, stage).close()


# -- Kafka reads ours ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, Any]]:
    """What Kafka's formatters make of a log that we wrote: the keys and the values."""
    home = tmp_path_factory.mktemp("ours") / "home"
    with ours(home) as cluster:
        prepare(cluster.bootstrap)
        set_all_up(cluster.bootstrap)
        folder = cluster.home.log_dir(1) / FOLDER
    found = dump(segment_paths(str(folder)), "--deep-iteration", "--offsets-decoder")
    assert found.complaints == []
    return [parsed(line) for line in found.records]


def parsed(line: str) -> tuple[Any, Any]:
    """Read the two documents of a line; a tombstone has no second one."""
    _, _, rest = line.partition(" key: ")
    key, _, value = rest.partition(" payload: ")
    assert key.startswith("{"), line
    return json.loads(key), json.loads(value) if value.startswith("{") else None


def test_kafka_knows_every_record_that_we_write(printed: list[tuple[Any, Any]]) -> None:
    versions = Counter((key["type"], value and value["version"]) for key, value in printed)

    # Commits, classic groups; then the records of consumer groups, and what deletes them.
    kinds = {int(kind) for kind, _version in versions}
    assert kinds == {1, 2, 3, 5, 6, 7, 8}
    written = {(int(kind), int(version)) for kind, version in versions if version is not None}
    assert written == {(1, 4), (2, 3), (3, 0), (5, 0), (6, 0), (7, 0), (8, 0)}
    assert {int(kind) for kind, version in versions if version is None} == {5, 7, 8}


def test_kafka_reads_the_offsets_that_we_keep(printed: list[tuple[Any, Any]]) -> None:
    found: dict[str, dict[Place, int]] = {}
    for key, value in printed:
        if key["type"] in (1, "1"):
            data = key["data"]
            place = (data["topic"], data["partition"])
            found.setdefault(data["group"], {})[place] = value["data"]["offset"]

    assert found == dict.fromkeys(["first", *STAGES], COMMITTED)


def test_kafka_reads_the_groups_that_we_keep(printed: list[tuple[Any, Any]]) -> None:
    last: dict[tuple[int, str], Any] = {}
    for key, value in printed:
        data = key["data"]
        name = data.get("group") or data.get("groupId")
        last[int(key["type"]), name] = value and value["data"]

    static = last[2, Stage.STATIC]
    assert (static["generation"], static["protocol"], static["protocolType"]) == (
        1,
        "range",
        "consumer",
    )
    assert [member["groupInstanceId"] for member in static["members"]] == [INSTANCE]
    assert last[2, Stage.LEFT]["members"] == []
    assert last[3, Stage.CONSUMER]["epoch"] == last[6, Stage.CONSUMER]["assignmentEpoch"] == 2
    assert last[5, Stage.CONSUMER]["subscribedTopicNames"] == [READ]
    (assigned,) = last[8, Stage.CONSUMER]["assignedPartitions"]
    assert assigned["partitions"] == [0, 1]
    assert last[8, Stage.ENTERED] is None


# -- we load Kafka's -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a broker says of a group; ids of topics are each cluster's own and stay out."""

    offsets: dict[Place, int]
    listed: tuple[str, str, str]
    epochs: tuple[int, int] | None
    members: list[tuple[Any, ...]]


def told_of(bootstrap: str, group: str) -> Told:
    with closing(Coordinated(bootstrap, group)) as opened:
        offsets, listed = patiently(opened.offsets), opened.listed()
        if group == Stage.SIMPLE:
            return Told(offsets=offsets, listed=as_listed(listed), epochs=None, members=[])
        group_told = opened.described()
    members: list[tuple[Any, ...]]
    if listed.group_type == "classic":
        epochs = None
        members = [
            (
                *(each.member_id, each.group_instance_id, each.client_id, each.client_host),
                *(each.member_metadata, each.member_assignment),
            )
            for each in group_told.members
        ]
    else:
        epochs = (group_told.group_epoch, group_told.assignment_epoch)
        members = [
            (
                *(each.member_id, each.instance_id, each.member_epoch, each.client_id),
                *(each.client_host, each.subscribed_topic_names),
            )
            for each in group_told.members
        ]
    return Told(offsets=offsets, listed=as_listed(listed), epochs=epochs, members=members)


def as_listed(listed: Any) -> tuple[str, str, str]:
    return listed.group_state, listed.group_type, listed.protocol_type


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[Stage, Told], str]]:
    """What Kafka said of its groups, and a broker of ours over the same folder."""
    kafka = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    with kafka.running():
        prepare(kafka.bootstrap)
        set_all_up(kafka.bootstrap)
        told = {stage: told_of(kafka.bootstrap, stage) for stage in STAGES}
    home = tmp_path_factory.mktemp("over") / "home"
    with ours(home) as cluster:
        prepare(cluster.bootstrap)
        log_dir = cluster.home.log_dir(1)
    put_in_place(kafka.log_dir / FOLDER, log_dir / FOLDER)
    with ours(home) as cluster:
        yield told, cluster.bootstrap


def put_in_place(theirs: Path, folder: Path) -> None:
    """Replace what a stopped broker of ours has kept by Kafka's, but for the topic's id."""
    for path in folder.iterdir():
        if path.name != names.PARTITION_METADATA:
            path.unlink()
    for path in theirs.iterdir():
        if path.name != names.PARTITION_METADATA:
            shutil.copy(path, folder / path.name)
    # What was written about the old files holds for them only.
    (folder.parent / names.CLEAN_SHUTDOWN).unlink()
    for name in (names.RECOVERY_POINTS, names.HIGH_WATERMARKS, names.LOG_STARTS):
        (folder.parent / name).unlink(missing_ok=True)


@pytest.mark.parametrize("stage", STAGES)
def test_we_find_in_kafkas_folder_what_kafka_found_in_it(
    both: tuple[dict[Stage, Told], str], stage: Stage
) -> None:
    told, bootstrap = both

    assert told_of(bootstrap, stage) == told[stage]


def test_a_group_from_kafkas_folder_goes_on(both: tuple[dict[Stage, Told], str]) -> None:
    told, bootstrap = both
    (member,) = told[Stage.DYNAMIC].members
    with closing(Coordinated(bootstrap, Stage.DYNAMIC)) as opened:
        patiently(opened.offsets)

        opened.heartbeat(member[0], 1)
        opened.commit({(READ, 0): 8}, member_id=member[0], generation=1)

        assert opened.offsets() == {**COMMITTED, (READ, 0): 8}
