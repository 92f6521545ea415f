"""Apache Kafka's DumpLogSegments over the folders that we write: every kind of file, all checks on.

Kafka's tools come by Maven, so this file is an extra; test_java_segments.py is what every run
compares with.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.protocol.records.reader import Record
from brokers.storage import names
from brokers.storage.names import offset_file
from tests.extras import requires
from tests.interop.stories import (
    ABORTING,
    COMMITTING,
    COORDINATOR_EPOCH,
    IDEMPOTENT,
    StoredBatch,
    Story,
    open_log,
    segment_paths,
)
from tests.oracles.dump_log import dump

pytestmark = [pytest.mark.interop, pytest.mark.slow, requires("java", "maven-kafka")]

UNDECIDED = 10


@pytest.fixture
def told(tmp_path: Path) -> tuple[Path, list[StoredBatch]]:
    """A log that was closed with a transaction still open: its folder and its batches."""
    folder = tmp_path / "story-0"
    log = open_log(folder)
    story = Story(log)
    story.tell_everything()
    story.append(producer_id=UNDECIDED, is_transactional=True)
    story.append()
    log.close()
    return folder, story.batches


def test_kafka_prints_every_record_of_our_segments(told: tuple[Path, list[StoredBatch]]) -> None:
    folder, batches = told
    paths = segment_paths(folder)
    assert len(paths) > 2

    printed = dump(paths, "--deep-iteration", "--print-data-log")

    assert printed.records == [line for batch in batches for line in record_lines(batch)]
    valid = [line for line in printed.others if line.startswith("baseOffset: ")]
    assert len(valid) == len(batches)
    assert all(line.endswith(" isvalid: true") for line in valid)
    assert printed.complaints == []


def test_kafka_finds_our_indexes_true_and_sane(told: tuple[Path, list[StoredBatch]]) -> None:
    folder, _ = told
    offsets = segment_paths(folder, names.OFFSET_INDEX)
    times = segment_paths(folder, names.TIME_INDEX)

    compared = dump([*offsets, *times], "--deep-iteration")
    checked = dump([*offsets, *times], "--index-sanity-check")

    assert compared.complaints == checked.complaints == []
    entries = sum(Path(path).stat().st_size // 8 for path in offsets)
    assert len([line for line in compared.others if " position: " in line]) == entries > 20
    passed = [
        line.partition(" ")[0] for line in checked.others if line.endswith("passed sanity check.")
    ]
    assert passed == [*offsets, *times]


# The byte is the last one of the first entry's offset.
@pytest.mark.parametrize(("suffix", "byte"), [(names.OFFSET_INDEX, 3), (names.TIME_INDEX, 11)])
def test_kafka_finds_a_lie_planted_in_our_index(
    told: tuple[Path, list[StoredBatch]], suffix: str, byte: int
) -> None:
    folder, _ = told
    path = Path(segment_paths(folder, suffix)[0])
    data = bytearray(path.read_bytes())
    data[byte] ^= 1

    path.write_bytes(data)

    assert dump([str(path)], "--deep-iteration").complaints


def test_kafka_reads_our_producer_snapshots(told: tuple[Path, list[StoredBatch]]) -> None:
    folder, batches = told
    end_offset = batches[-1].records[-1].offset + 1
    newest = folder / offset_file(end_offset, names.PRODUCER_SNAPSHOT)

    lines = dump(segment_paths(folder, names.PRODUCER_SNAPSHOT)).others
    last_lines = dump([str(newest)]).others

    assert len(lines) > len(last_lines) > 1
    found = {(line := fields(text))["producerId"]: line for text in last_lines[1:]}
    assert set(found) == {str(i) for i in (IDEMPOTENT, COMMITTING, ABORTING, UNDECIDED)}
    for producer_id, line in found.items():
        own = [batch for batch in batches if batch.producer_id == int(producer_id)]
        data = [batch for batch in own if not batch.is_control]
        is_decided = len(own) > len(data)
        last = data[-1]
        assert line["lastOffset"] == str(last.records[-1].offset)
        assert line["lastSequence"] == str(last.base_sequence + len(last.records) - 1)
        assert line["offsetDelta"] == str(len(last.records) - 1)
        assert line["coordinatorEpoch"] == str(COORDINATOR_EPOCH if is_decided else -1)
        first = f"OptionalLong[{last.records[0].offset}]"
        is_open = int(producer_id) == UNDECIDED
        assert line["currentTxnFirstOffset"] == (first if is_open else "OptionalLong.empty")


def test_kafka_reads_our_aborted_transactions(told: tuple[Path, list[StoredBatch]]) -> None:
    folder, batches = told

    lines = dump(segment_paths(folder, names.TXN_INDEX)).others

    found = [fields(line) for line in lines if line.startswith("version: ")]
    assert found == [
        {
            "version": "0",
            "producerId": str(ABORTING),
            "firstOffset": str(batches[number - 3].records[0].offset),
            "lastOffset": str(batch.records[0].offset),
            # The other transaction of the story began right behind this one.
            "lastStableOffset": str(batches[number - 2].records[0].offset),
        }
        for number, batch in enumerate(batches)
        if batch.is_control and batch.producer_id == ABORTING
    ]


def fields(line: str) -> dict[str, str]:
    """The values of a line of `name: value name: value`."""
    words = line.split()
    return {
        name.removesuffix(":"): value for name, value in zip(words[::2], words[1::2], strict=True)
    }


def record_lines(batch: StoredBatch) -> Iterator[str]:
    """What Kafka prints for the records of a batch."""
    for number, record in enumerate(batch.records):
        sequence = batch.base_sequence + number if batch.base_sequence >= 0 else -1
        header_keys = ",".join(key.decode() for key, _ in record.headers)
        yield (
            f"| offset: {record.offset}"
            f" {'LogAppendTime' if batch.is_stamped else 'CreateTime'}: {record.timestamp}"
            f" keySize: {size(record.key)} valueSize: {size(record.value)}"
            f" sequence: {sequence} headerKeys: [{header_keys}]"
            f"{marker(record) if batch.is_control else content(record)}"
        )


def size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def content(record: Record) -> str:
    return "".join(
        f" {name}: {data.decode(errors='replace')}"
        for name, data in (("key", record.key), ("payload", record.value))
        if data is not None
    )


def marker(record: Record) -> str:
    assert record.key is not None
    kind = "COMMIT" if record.key[-1] else "ABORT"
    return f" endTxnMarker: {kind} coordinatorEpoch: {COORDINATOR_EPOCH}"
