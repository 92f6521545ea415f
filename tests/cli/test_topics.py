"""`./samsa topics` against a broker of ours."""

from collections.abc import Iterator

import pytest

from cli.configs import configs
from cli.produce import produce
from cli.topics import topics
from tests.cli.data_commands import Shell, shell

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with shell(tmp_path_factory.mktemp("broker"), orders=3, clicks=1) as running:
        yield running


def names(sh: Shell, *arguments: str) -> list[str]:
    return sh.run(topics, "list", "-O", "name", *arguments).stdout.splitlines()


def test_topics_are_listed_by_name(sh: Shell) -> None:
    table = sh.run(topics, "list", "*s").stdout.splitlines()

    assert table[0].split() == ["NAME", "PARTITIONS", "REPLICATION"]
    assert table[1].split() == ["clicks", "1", "1"]
    assert table[2].split() == ["orders", "3", "1"]


def test_a_pattern_narrows_the_list(sh: Shell) -> None:
    assert names(sh, "ord*") == ["orders"]
    assert sh.run(topics, "list", "zzz*").stdout == "No topic matches zzz*.\n"


def test_json_has_the_same_fields_whatever_there_is(sh: Shell) -> None:
    assert sh.json(topics, "list", "orders") == [
        {"name": "orders", "partitions": 3, "replication_factor": 1, "is_internal": False}
    ]
    assert sh.json(topics, "list", "zzz") == []


def test_a_topic_is_created_with_what_was_asked_for(sh: Shell) -> None:
    ran = sh.run(topics, "create", "made", "-p", "2", "-c", "retention.ms=1000")

    assert ran.stdout == "Created topic made.\n"
    [described] = sh.json(topics, "describe", "made")
    assert len(described["partitions"]) == 2
    assert described["configs"] == {"retention.ms": "1000"}


def test_a_topic_whose_only_copy_may_be_lost_is_warned_of(sh: Shell) -> None:
    key = "samsa.durability"
    warned = [
        sh.run(topics, "create", "lone", "-c", f"{key}=replicated"),
        sh.run(topics, "create", "alone", "-r", "1", "-c", f"{key}=replicated", "--dry-run"),
        sh.run(topics, "describe", "lone"),
        sh.run(topics, "alter", "lone", "--set", "retention.ms=1000"),
        sh.run(configs, "describe", "topic", "lone"),
        sh.run(configs, "alter", "topic", "lone", "--set", "retention.ms=2000"),
    ]
    silent = [
        sh.run(configs, "alter", "topic", "lone", "--set", f"{key}=synced"),
        sh.run(topics, "describe", "lone"),
        sh.run(topics, "describe", "orders"),
    ]

    for ran in warned:
        assert "one replica and samsa.durability=replicated" in ran.stderr, ran
    assert [ran.stderr for ran in silent] == ["", "", ""]
    sh.run(topics, "delete", "lone", "--yes")


def test_a_topic_that_exists_is_a_conflict_unless_that_was_foreseen(sh: Shell) -> None:
    refused = sh.run(topics, "create", "orders", code=4)
    fine = sh.run(topics, "create", "orders", "--if-not-exists")

    assert "TOPIC_ALREADY_EXISTS" in refused.stderr
    assert fine.stdout == "Topic orders exists already.\n"


def test_a_dry_run_creates_nothing(sh: Shell) -> None:
    ran = sh.json(topics, "create", "ghost", "--dry-run")

    assert ran == [{"name": "ghost", "created": False, "dry_run": True}]
    assert "ghost" not in names(sh)


def test_a_topic_is_described_with_its_offsets(sh: Shell) -> None:
    sh.run(topics, "create", "filled", "-p", "2")
    sh.run(produce, "filled", "a", "b", "-p", "1")

    text = sh.run(topics, "describe", "filled").stdout
    [described] = sh.json(topics, "describe", "filled")

    assert "  records      2\n" in text
    assert [
        (p["partition"], p["leader"], p["isr"], p["first_offset"], p["end_offset"])
        for p in described["partitions"]
    ] == [(0, 1, [1], 0, 0), (1, 1, [1], 0, 2)]


def test_a_topic_that_is_not_there_is_not_found(sh: Shell) -> None:
    ran = sh.run(topics, "describe", "nobody", code=3)

    assert "topic nobody: the cluster does not know it" in ran.stderr


def test_an_alteration_shows_each_value_before_and_after(sh: Shell) -> None:
    sh.run(topics, "create", "altered", "-p", "1")
    change = ["alter", "altered", "-p", "4", "--set", "retention.ms=7"]

    planned = sh.json(topics, *change, "--dry-run")
    done = sh.run(topics, *change).stdout

    assert planned == {
        "name": "altered",
        "partitions": {"before": 1, "after": 4},
        "configs": [{"key": "retention.ms", "before": "604800000", "after": "7"}],
        "dry_run": True,
    }
    assert done.splitlines()[:2] == ["Topic altered has 4 partitions; it had 1.", "Changed:"]


def test_an_alteration_that_is_wrong_in_part_changes_nothing(sh: Shell) -> None:
    sh.run(topics, "create", "whole", "-p", "1")

    sh.run(topics, "alter", "whole", "-p", "4", "--set", "retention.ms=-5", code=1)

    assert len(sh.json(topics, "describe", "whole")[0]["partitions"]) == 1


def test_deleting_asks_and_nobody_answers_for_a_script(sh: Shell) -> None:
    ran = sh.run(topics, "delete", "orders", code=2)

    assert "add --yes" in ran.stderr
    assert "orders" in names(sh)


def test_a_topic_is_deleted_without_a_question_where_that_is_asked_for(sh: Shell) -> None:
    sh.run(topics, "create", "doomed", "-p", "2")

    planned = sh.run(topics, "delete", "doomed", "--dry-run")
    done = sh.run(topics, "delete", "doomed", "--yes")

    assert planned.stdout == "Would delete topic doomed with its 2 partitions.\n"
    assert done.stdout == "Deleted topic doomed with its 2 partitions.\n"
    assert "doomed" not in names(sh)


def test_a_topic_of_the_cluster_itself_is_deleted_by_force_only(sh: Shell) -> None:
    sh.run(topics, "create", "__share_group_state")

    for option in ("--yes", "--dry-run"):
        refused = sh.run(topics, "delete", "__share_group_state", option, code=2)
        assert "loses the positions of all share groups" in refused.stderr
        assert "--force" in refused.stderr
    assert "__share_group_state" in names(sh)
    sh.run(topics, "delete", "__share_group_state", "--yes", "--force")

    assert "__share_group_state" not in names(sh)


def test_what_is_not_there_cannot_be_deleted_unless_that_was_foreseen(sh: Shell) -> None:
    sh.run(topics, "delete", "nobody", "--yes", code=3)

    told = sh.json(topics, "delete", "nobody", "--yes", "--if-exists")

    assert told == [{"name": "nobody", "deleted": False, "dry_run": False}]


def test_a_change_of_nothing_is_a_wrong_command_line(sh: Shell) -> None:
    assert "nothing to change" in sh.run(topics, "alter", "orders", code=2).stderr
