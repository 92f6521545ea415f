"""`./samsa groups` against a broker of ours that serves groups that the test makes up."""

import json
from collections.abc import Iterator

import click
import pytest

from cli.groups import WATCH_SECONDS, groups, watch
from cli.produce import produce
from tests.cli.data_commands import Shell, shell
from tests.fakes.group_service import GroupService, MadeUpGroup, MadeUpMember, served

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GroupService, Shell]]:
    service = GroupService()
    with served(service), shell(tmp_path_factory.mktemp("broker"), orders=2, clicks=1) as running:
        running.run(produce, "orders", "-p", "0", *"abcde")
        yield service, running


@pytest.fixture
def sh(started: tuple[GroupService, Shell]) -> Shell:
    """A shell beside a group that reads, one that stands still, and one with nothing."""
    service, running = started
    service.groups = {
        "reading": MadeUpGroup(
            members=[
                MadeUpMember(id="m-1", client_id="app", assignment={"orders": [0]}),
                MadeUpMember(id="m-2", client_id="app", assignment={"orders": [1]}),
            ],
            offsets={("orders", 0): 2},
        ),
        "still": MadeUpGroup(offsets={("orders", 0): 5, ("orders", 1): 0, ("clicks", 0): 0}),
        "nothing": MadeUpGroup(),
    }
    return running


@pytest.fixture
def service(started: tuple[GroupService, Shell], sh: Shell) -> GroupService:
    return started[0]


def test_groups_are_listed_with_type_and_state(sh: Shell) -> None:
    table = [line.split() for line in sh.run(groups, "list").stdout.splitlines()]

    assert table == [
        ["GROUP", "TYPE", "STATE"],
        ["nothing", "classic", "Empty"],
        ["reading", "classic", "Stable"],
        ["still", "classic", "Empty"],
    ]


def test_a_list_is_narrowed_by_pattern_state_and_type(sh: Shell) -> None:
    def names(*arguments: str) -> list[str]:
        return sh.run(groups, "list", "-O", "name", *arguments).stdout.splitlines()

    assert names("*ing") == ["nothing", "reading"]
    assert names("--state", "stable") == ["reading"]
    assert names("--state", "Empty", "--state", "Stable", "s*") == ["still"]
    assert names("--type", "consumer") == []
    assert sh.run(groups, "list", "zzz*").stdout == "No group matches.\n"
    assert sh.json(groups, "list", "still") == [
        {"group": "still", "state": "Empty", "type": "classic", "is_simple": False, "verdict": None}
    ]


def test_a_group_is_described_with_owners_and_lag(sh: Shell) -> None:
    lines = sh.run(groups, "describe", "reading").stdout.splitlines()
    [described] = sh.json(groups, "describe", "reading")

    assert lines[:4] == ["reading", "  state        Stable", "  type         classic", lines[3]]
    titles = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG LAG-TIME CONSUMER-ID HOST"
    assert lines[6].split() == [*titles.split(), "CLIENT-ID"]
    first, second = described["partitions"]
    assert (first["current_offset"], first["end_offset"], first["lag"]) == (2, 5, 3)
    assert first["lag_ms"] < 60_000
    assert (first["consumer_id"], first["client_id"]) == ("m-1", "app")
    assert (second["partition"], second["lag"], second["consumer_id"]) == (1, None, "m-2")
    assert lines[8].split()[3:7] == ["-", "-", "-", "-"]


def test_all_groups_are_described_where_that_is_asked_for(sh: Shell) -> None:
    found = sh.json(groups, "describe", "--all")

    assert [group["group"] for group in found] == ["nothing", "reading", "still"]
    assert ("No offset is committed, and no partition is assigned.") in sh.run(
        groups, "describe", "nothing"
    ).stdout


def test_members_are_shown_and_their_partitions_where_that_is_asked_for(sh: Shell) -> None:
    short = sh.run(groups, "members", "reading").stdout.splitlines()
    full = sh.run(groups, "members", "reading", "--verbose").stdout.splitlines()
    [first, _] = sh.json(groups, "members", "reading")

    assert short[1].split() == ["reading", "m-1", "/127.0.0.1", "app", "1"]
    assert full[1].split()[-1] == "orders(0)"
    assert first["assignment"] == [{"topic": "orders", "partition": 0}]
    assert sh.run(groups, "members", "reading", "-O", "name").stdout == "m-1\nm-2\n"
    assert sh.run(groups, "members", "still").stdout == "Group still has no members; it is empty.\n"


def test_lag_is_shown_for_the_groups_named_or_for_all(sh: Shell) -> None:
    table = sh.run(groups, "lag", "still").stdout.splitlines()
    everything = sh.json(groups, "lag")

    assert table[2].split() == ["still", "orders", "0", "5", "5", "0", "0s"]
    assert {(row["group"], row["topic"], row["partition"]): row["lag"] for row in everything} == {
        ("reading", "orders", 0): 3,
        ("still", "clicks", 0): 0,
        ("still", "orders", 0): 0,
        ("still", "orders", 1): 0,
    }
    assert sh.run(groups, "lag", "nothing").stdout == "Nothing is committed.\n"


def test_watching_looks_again_and_again_until_it_is_interrupted() -> None:
    looks: list[str] = []
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    watch(lambda: looks.append("look"), wait=wait)

    assert looks == ["look"] * 3
    assert waits == [WATCH_SECONDS] * 3


def test_a_watch_ends_well_with_what_was_shown(sh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_look: object) -> None:
        click.echo("watched")

    monkeypatch.setattr("cli.groups.watch", stop)

    assert sh.run(groups, "lag", "still", "--watch").stdout == "watched\n"


def test_a_group_is_deleted_without_a_question_where_that_is_asked_for(
    sh: Shell, service: GroupService
) -> None:
    asked = sh.run(groups, "delete", "still", code=2)
    done = sh.run(groups, "delete", "still", "nothing", "--yes")

    assert "add --yes" in asked.stderr
    assert done.stdout == "Deleted group still.\nDeleted group nothing.\n"
    assert list(service.groups) == ["reading"]


def test_a_group_that_reads_is_a_conflict(sh: Shell, service: GroupService) -> None:
    told = sh.run(groups, "delete", "reading", "--yes", code=4).stderr

    assert "the group has members that read at the moment (NON_EMPTY_GROUP)" in told
    assert "Next: stop its consumers" in told
    assert "reading" in service.groups


def test_offsets_of_a_topic_are_deleted_and_others_stay(sh: Shell, service: GroupService) -> None:
    done = sh.run(groups, "delete-offsets", "still", "-t", "orders:1", "-t", "clicks", "--yes")

    assert done.stdout.splitlines() == [
        "Deleted the offset of topic orders, partition 1; it was 0.",
        "Deleted the offset of topic clicks, partition 0; it was 0.",
    ]
    assert service.groups["still"].offsets == {("orders", 0): 5}


def test_offsets_of_a_topic_that_is_gone_can_be_deleted(sh: Shell, service: GroupService) -> None:
    service.groups["still"].offsets["gone", 4] = 9

    told = json.loads(
        sh.run(groups, "delete-offsets", "still", "-t", "gone", "-y", "-O", "json").stdout
    )

    assert told == [
        {"group": "still", "topic": "gone", "partition": 4, "before": 9, "deleted": True}
    ]
    assert ("gone", 4) not in service.groups["still"].offsets


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["describe", "nobody"], 3),
        (["members", "nobody"], 3),
        (["lag", "nobody"], 3),
        (["delete", "nobody", "--yes"], 3),
        (["delete-offsets", "nobody", "-t", "orders", "--yes"], 3),
        (["delete-offsets", "still", "-t", "zzz", "--yes"], 3),
        (["delete-offsets", "still", "-t", "orders:9", "--yes"], 3),
        (["delete-offsets", "reading", "-t", "orders", "--yes"], 4),
        (["delete-offsets", "still", "-t", "orders"], 2),
        (["delete-offsets", "still", "-t", "orders:x", "--yes"], 2),
        (["delete-offsets", "still", "--yes"], 2),
        (["describe"], 2),
        (["describe", "still", "--all"], 2),
        (["list", "--state", "asleep"], 2),
    ],
)
def test_what_is_missing_wrong_or_in_the_way_has_its_exit_code(
    sh: Shell, arguments: list[str], code: int
) -> None:
    sh.run(groups, *arguments, code=code)


def test_brokers_without_groups_say_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    with served(None), shell(tmp_path_factory.mktemp("bare"), orders=1) as sh:
        for arguments in (["list"], ["describe", "g"], ["lag", "g"], ["members", "g"]):
            told = sh.run(groups, *arguments, code=1).stderr
            assert "the brokers serve no consumer groups (UNSUPPORTED_VERSION)" in told
