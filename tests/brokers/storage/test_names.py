"""Names of files and folders, both ways."""

import pytest

from brokers.storage.names import (
    DELETE_FOLDER,
    LOG,
    MAX_NAME_BYTES,
    STRAY_FOLDER,
    OffsetFile,
    PartitionFolder,
    beside,
    offset_file,
    parse_offset_file,
    parse_partition_folder,
    partition_folder,
    set_aside_folder,
)

UNIQUE = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("offset", [0, 42, 2**63 - 1])
def test_segment_files_are_named_by_their_offset_in_twenty_digits(offset: int) -> None:
    name = offset_file(offset, LOG)

    assert name == f"{offset:020d}.log"
    assert parse_offset_file(name) == OffsetFile(offset=offset, suffix=LOG)


@pytest.mark.parametrize("marker", [".deleted", ".cleaned", ".swap", ".tmp"])
def test_marker_of_an_unfinished_file_is_recognized(marker: str) -> None:
    parsed = parse_offset_file(f"{7:020d}.timeindex{marker}")

    assert parsed == OffsetFile(offset=7, suffix=".timeindex", marker=marker)


@pytest.mark.parametrize(
    "name",
    [
        "leader-epoch-checkpoint",
        "1.log",
        "99999999999999999999.log",
        f"{7:020d}",
        f"{7:020d}.log.",
        f"{7:020d}.log.swap.tmp",
        f"-{7:019d}.log",
        f"{7:020d}.log\n",
        "٣" * 20 + ".log",
    ],
)
def test_other_names_are_not_segment_files(name: str) -> None:
    assert parse_offset_file(name) is None


@pytest.mark.parametrize("topic", ["a", "orders", "with-dash-3", "a.b_c-1", "x" * 244])
def test_partition_folders_are_read_as_they_are_written(topic: str) -> None:
    parsed = parse_partition_folder(partition_folder(topic, 12))

    assert parsed == PartitionFolder(topic=topic, partition=12)


def test_folder_set_aside_is_recognized_by_its_marker() -> None:
    stray = set_aside_folder("orders-eu", 3, UNIQUE, STRAY_FOLDER)
    future = f"orders-eu-3.{UNIQUE}-future"

    assert stray == f"orders-eu-3.{UNIQUE}-stray"
    assert parse_partition_folder(stray) == PartitionFolder(
        topic="orders-eu", partition=3, marker="-stray"
    )
    assert parse_partition_folder(future) == PartitionFolder(
        topic="orders-eu", partition=3, marker="-future"
    )


def test_a_long_topic_is_cut_so_that_the_folder_fits_the_file_system() -> None:
    name = set_aside_folder("t" * 249, 2**31 - 1, UNIQUE, DELETE_FOLDER)

    parsed = parse_partition_folder(name)

    assert len(name) == MAX_NAME_BYTES
    assert parsed is not None
    assert (parsed.partition, parsed.marker) == (2**31 - 1, DELETE_FOLDER)
    assert set(parsed.topic) == {"t"}


@pytest.mark.parametrize(
    "name", ["", "lost+found", "orders", "orders-", "-3", "orders-03", "orders-2147483648", "a b-1"]
)
def test_other_folders_are_not_partitions(name: str) -> None:
    assert parse_partition_folder(name) is None


def test_the_other_files_of_a_segment_have_the_markers_of_its_log() -> None:
    path = "/logs/a.log-0/00000000000000000042.log"

    assert beside(path, ".index") == "/logs/a.log-0/00000000000000000042.index"
    assert beside(path + ".swap", ".index") == "/logs/a.log-0/00000000000000000042.index.swap"
    assert beside(path + ".cleaned", ".log", ".swap") == path + ".swap"
    assert beside(path + ".swap", ".log", "") == path
