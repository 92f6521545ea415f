"""`./samsa groups reset`: what it shows is what it does."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli.group_reset import asked_of
from cli.groups import groups
from gateway.kafka.connection import Connection
from gateway.kafka.offset_plan import MAX_FILE_BYTES
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord
from tests.cli.data_commands import Shell, shell
from tests.fakes.group_service import GroupService, MadeUpGroup, MadeUpMember, served

pytestmark = pytest.mark.slow

RECORDS = 10
FIRST = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GroupService, Shell]]:
    """Partition 0 of orders has a record for each second from noon on."""
    service = GroupService()
    with served(service), shell(tmp_path_factory.mktemp("broker"), orders=2, clicks=1) as running:
        producer = TopicWriter(Connection(bootstrap=running.bootstrap), "orders")
        for number in range(RECORDS):
            written_ms = int(FIRST.timestamp() + number) * 1000
            producer.send(NewRecord(value=b"x", partition=0, timestamp_ms=written_ms))
        producer.flush()
        yield service, running


@pytest.fixture
def sh(started: tuple[GroupService, Shell]) -> Shell:
    service, running = started
    service.groups = {
        "still": MadeUpGroup(offsets={("orders", 0): 4}),
        "nothing": MadeUpGroup(),
        "reading": MadeUpGroup(members=[MadeUpMember(id="m", assignment={"orders": [0]})]),
    }
    return running


@pytest.fixture
def service(started: tuple[GroupService, Shell], sh: Shell) -> GroupService:
    return started[0]


def after(told: dict[str, Any]) -> dict[tuple[str, int], tuple[int | None, int]]:
    return {(p["topic"], p["partition"]): (p["before"], p["after"]) for p in told["partitions"]}


@pytest.mark.parametrize(
    ("goal", "offset"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], RECORDS),
        (["--to-current"], 4),
        (["--to-offset", "7"], 7),
        (["--to-offset", "99"], RECORDS),
        (["--shift-by", "2"], 6),
        (["--shift-by", "-3"], 1),
        (["--shift-by", "-9"], 0),
        (["--to-datetime", "2026-01-31T12:00:03"], 3),
        (["--to-datetime", "2026-01-31T13:00:03+01:00"], 3),
        (["--to-datetime", "2027-01-01"], RECORDS),
        (["--by-duration", "P9000D"], 0),
        (["--by-duration", "PT0S"], RECORDS),
    ],
)
def test_each_way_of_saying_where_is_planned_and_then_done(
    sh: Shell, service: GroupService, goal: list[str], offset: int
) -> None:
    command = ["reset", "still", "--topic", "orders:0", *goal]

    planned = sh.json(groups, *command)
    assert service.groups["still"].offsets == {("orders", 0): 4}
    done = sh.json(groups, *command, "--execute")

    assert after(planned) == after(done) == {("orders", 0): (4, offset)}
    assert (planned["dry_run"], done["dry_run"]) == (True, False)
    assert service.groups["still"].offsets == {("orders", 0): offset}


def test_a_plan_is_shown_before_and_after_with_its_notes(sh: Shell) -> None:
    shown = sh.run(groups, "reset", "still", "-t", "orders", "--to-offset", "7").stdout.splitlines()
    done = sh.run(groups, "reset", "still", "-t", "orders", "--to-offset", "7", "--execute").stdout

    assert shown[0] == "Would reset group still; add --execute to do it:"
    assert shown[2].split() == ["orders", "0", "4", "7", "0", "10"]
    assert shown[3].split()[:6] == ["orders", "1", "-", "0", "0", "0"]
    assert shown[3].endswith("offset 7 is beyond the end 0, so the end")
    assert done.splitlines()[0] == "Reset group still:"
    assert done.splitlines()[1:] == shown[1:]


def test_all_topics_are_those_that_the_group_has_offsets_of(
    sh: Shell, service: GroupService
) -> None:
    service.groups["still"].offsets["clicks", 0] = 0

    told = sh.json(groups, "reset", "still", "--all-topics", "--to-latest")

    assert after(told) == {("clicks", 0): (0, 0), ("orders", 0): (4, RECORDS)}


def test_offsets_may_be_set_for_a_group_before_its_first_member(
    sh: Shell, service: GroupService
) -> None:
    sh.run(groups, "reset", "new", "-t", "orders", "-t", "clicks:0", "--to-latest", "--execute")

    assert service.groups["new"].offsets == {
        ("orders", 0): RECORDS,
        ("orders", 1): 0,
        ("clicks", 0): 0,
    }


def test_a_plan_that_is_exported_is_done_from_its_file(
    sh: Shell, service: GroupService, tmp_path: Path
) -> None:
    exported = sh.run(groups, "reset", "still", "-t", "orders:0", "--to-offset", "8", "--export")
    file = tmp_path / "plan.csv"
    file.write_text(exported.stdout)

    sh.run(groups, "reset", "still", "--from-file", str(file), "--execute")

    assert exported.stdout == "orders,0,8\n"
    assert service.groups["still"].offsets == {("orders", 0): 8}


def test_an_export_says_beside_it_what_is_not_as_asked(sh: Shell) -> None:
    ran = sh.run(groups, "reset", "still", "-t", "orders:0", "--to-offset", "99", "--export")

    assert ran.stdout == "orders,0,10\n"
    assert ran.stderr == "topic orders, partition 0: offset 99 is beyond the end 10, so the end\n"


@pytest.mark.parametrize("mode", [[], ["--execute"]])
def test_a_group_that_reads_is_a_conflict(
    sh: Shell, service: GroupService, mode: list[str]
) -> None:
    ran = sh.run(groups, "reset", "reading", "-t", "orders", "--to-latest", *mode, code=4)

    assert "group reading: it is Stable with 1 member;" in ran.stderr
    assert service.groups["reading"].offsets == {}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-t", "orders"], 2),
        (["-t", "orders", "--to-latest", "--to-earliest"], 2),
        (["-t", "orders", "--to-latest", "--shift-by", "0"], 2),
        (["--to-latest"], 2),
        (["-t", "orders", "--all-topics", "--to-latest"], 2),
        (["-t", "orders", "--to-latest", "--execute", "--dry-run"], 2),
        (["-t", "orders", "--to-latest", "--export", "-O", "json"], 2),
        (["-t", "orders:x", "--to-latest"], 2),
        (["-t", "orders", "--to-offset", "-1"], 2),
        (["-t", "orders", "--to-datetime", "24:15"], 2),
        (["-t", "orders", "--by-duration", "1 day"], 2),
        (["-t", "orders", "--from-file", "no-such-file"], 2),
        (["-t", "zzz", "--to-latest"], 3),
        (["-t", "orders:9", "--to-latest"], 3),
        (["-t", "orders:1", "--shift-by", "1"], 3),
    ],
)
def test_what_makes_no_sense_or_is_not_there_has_its_exit_code(
    sh: Shell, service: GroupService, arguments: list[str], code: int
) -> None:
    sh.run(groups, "reset", "still", *arguments, code=code)

    assert service.groups["still"].offsets == {("orders", 0): 4}


def test_a_group_without_offsets_has_no_topics_of_its_own(sh: Shell) -> None:
    told = sh.run(groups, "reset", "nothing", "--all-topics", "--to-latest", code=3).stderr

    assert "group nothing: nothing is committed" in told


@pytest.mark.parametrize(
    ("content", "says", "code"),
    [
        (b"orders,0\n", "line 1 has 2 columns", 2),
        (b"orders,0,\xff\n", "is not UTF-8 text", 2),
        (b"zzz,0,1\n", "topic zzz: the cluster does not know it", 3),
        (b"orders,7,1\n", "topic orders, partition 7", 3),
    ],
)
def test_a_file_that_cannot_be_meant_says_why(
    sh: Shell, tmp_path: Path, content: bytes, says: str, code: int
) -> None:
    file = tmp_path / "plan.csv"
    file.write_bytes(content)

    ran = sh.run(groups, "reset", "still", "--from-file", str(file), code=code)

    assert says in ran.stderr


def test_a_file_that_is_too_large_is_not_read_to_its_end(sh: Shell, tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    with file.open("wb") as sparse:
        sparse.truncate(MAX_FILE_BYTES + 1)

    ran = sh.run(groups, "reset", "still", "--from-file", str(file), code=2)

    assert f"is larger than {MAX_FILE_BYTES} bytes" in ran.stderr


def test_a_duration_counts_back_from_now() -> None:
    asked = asked_of({"by_duration": "PT10S", "to_offset": None}, "g", now_s=lambda: 100.0)
    before_1970 = asked_of({"by_duration": "P9999D"}, "g", now_s=lambda: 100.0)

    assert (asked.goal.value, before_1970.goal.value) == (90_000, 0)


@pytest.mark.parametrize(
    ("text", "hours"), [("-1h", 47), ("yesterday 12:00", 36), ("1970-01-02 13:00+01:00", 36)]
)
def test_a_time_is_given_in_the_words_of_the_console(text: str, hours: int) -> None:
    asked = asked_of({"to_datetime": text}, "g", now_s=lambda: 48 * 3600.0)

    assert asked.goal.value == hours * 3_600_000
