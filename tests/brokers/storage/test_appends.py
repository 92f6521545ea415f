"""Appending: what the log makes of a batch, and what it refuses."""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import Batch, TimestampType, batches
from brokers.protocol.records.reader import records
from brokers.protocol.records.validation import Origin, ProduceRules
from brokers.storage.errors import LogDirFailed, OutOfSpace
from brokers.storage.files import Buffer
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from tests.builders.logs import (
    ALL,
    NOW_MS,
    append,
    batch,
    content,
    fill,
    marker,
    open_log,
    read,
    spans,
)
from tests.fakes.faulty_files import Fault, FaultyFiles

SIZE = len(batch())
WRITES = frozenset({"pwrite"})


def refusal(log: PartitionLog, data: memoryview, *, origin: Origin = Origin.CLIENT) -> ErrorCode:
    """The code of the error; the log must be as it was."""
    before = (log.end_offset, log.size_bytes)
    with pytest.raises(KafkaError) as caught:
        log.append(data, leader_epoch=0, now_ms=NOW_MS, origin=origin)
    assert (log.end_offset, log.size_bytes) == before
    return caught.value.code


def test_a_batch_gets_the_next_offset_and_the_epoch_and_is_stored_as_it_came(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, batch(records=3))
    data = batch(records=2, size=40)
    before = bytes(data)

    appended = append(log, data, epoch=7)

    assert (appended.base_offset, appended.last_offset) == (3, 4)
    assert appended.log_append_time_ms == -1
    assert not appended.is_duplicate
    stored = read(log, 3)
    assert stored[16:] == before[16:]
    (found,) = batches(memoryview(stored))
    assert (found.base_offset, found.leader_epoch) == (3, 7)
    found.check_crc()


def test_the_brokers_time_replaces_that_of_the_records_where_the_topic_says_so(
    tmp_path: Path,
) -> None:
    rules = ProduceRules(timestamp_type=TimestampType.LOG_APPEND_TIME)
    log = open_log(tmp_path / "t-0", LogConfig(rules=rules))

    appended = append(log, batch(records=2, timestamp=5))

    assert appended.log_append_time_ms == NOW_MS
    (found,) = batches(memoryview(read(log, 0)))
    found.check_crc()
    assert [record.timestamp for record in records(found, max_bytes=ALL)] == [NOW_MS, NOW_MS]


@pytest.mark.parametrize(
    ("at", "code"),
    [(40, ErrorCode.CORRUPT_MESSAGE), (16, ErrorCode.INVALID_RECORD)],
    ids=["content", "magic"],
)
def test_a_batch_that_is_not_sound_is_refused(tmp_path: Path, at: int, code: ErrorCode) -> None:
    log = open_log(tmp_path / "t-0")
    data = batch()
    data[at] ^= 1

    assert refusal(log, data) is code


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=SIZE - 1))

    assert refusal(log, batch()) is ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_batch_sent_again_is_answered_as_the_first_time(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log)
    first = append(log, batch(producer=5, records=2))
    append(log, batch(producer=5, sequence=2))

    again = append(log, batch(producer=5, records=2))

    assert again.is_duplicate
    assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset)
    assert log.end_offset == 4


def test_a_gap_in_a_producers_sequence_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, batch(producer=5))

    code = refusal(log, batch(producer=5, sequence=2))

    assert code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_marker_comes_from_the_coordinator_only(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")

    code = refusal(log, marker(5, commit=True), origin=Origin.CLIENT)

    assert code is ErrorCode.INVALID_RECORD


def test_a_marker_of_a_deposed_coordinator_is_fenced(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, marker(5, commit=True, coordinator_epoch=3))

    code = refusal(log, marker(5, commit=True, coordinator_epoch=2), origin=Origin.COORDINATOR)

    assert code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_abort_is_indexed_and_advances_the_last_stable_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, batch(producer=5, is_transactional=True, records=2))
    append(log, batch(producer=6, is_transactional=True))
    assert log.producers.first_unstable_offset == 0

    append(log, marker(5, commit=False))

    log.producers.replicated_to(log.end_offset)
    assert log.producers.first_unstable_offset == 2
    (aborted,) = log.aborted_transactions(0, 10)
    assert (aborted.producer_id, aborted.first_offset, aborted.last_offset) == (5, 0, 3)
    assert aborted.last_stable_offset == 2


def test_a_follower_takes_several_batches_verbatim(tmp_path: Path) -> None:
    leader = open_log(tmp_path / "leader-0")
    append(leader, batch(records=2), epoch=3)
    append(leader, batch(producer=5), epoch=3)
    append(leader, batch(producer=5, sequence=1), epoch=4)
    follower = open_log(tmp_path / "follower-0")

    sent = bytearray(content(leader))
    appended = follower.append_replicated(memoryview(sent), now_ms=NOW_MS)

    assert (appended.base_offset, appended.last_offset) == (0, 3)
    assert content(follower) == content(leader)
    assert follower.epochs.entries() == [(3, 0), (4, 3)]
    assert append(follower, batch(producer=5, sequence=1)).is_duplicate


def test_gaps_of_compaction_on_the_leader_are_readable(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    sent = [batch(base_offset=base, epoch=0, records=2) for base in (0, 10, 12, 40)]

    log.append_replicated(memoryview(b"".join(sent)), now_ms=NOW_MS)

    assert log.end_offset == 42
    for offset, first in [(1, 0), (2, 10), (9, 10), (11, 10), (13, 12), (14, 40), (39, 40)]:
        assert spans(read(log, offset))[0][0] == first


def test_more_than_a_segment_from_the_leader_is_spread_over_several(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=3 * SIZE))
    sent = b"".join(batch(base_offset=base, epoch=0) for base in range(10))

    log.append_replicated(memoryview(sent), now_ms=NOW_MS)

    assert [segment.base_offset for segment in log.segments] == [0, 3, 6, 9]
    assert spans(content(log)) == [(base, base) for base in range(10)]


@pytest.mark.parametrize("base_offset", [0, 4])
def test_offsets_that_the_follower_has_are_refused(tmp_path: Path, base_offset: int) -> None:
    log = open_log(tmp_path / "t-0")
    fill(log, 5)

    with pytest.raises(KafkaError) as caught:
        log.append_replicated(batch(base_offset=base_offset, epoch=0), now_ms=NOW_MS)

    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.end_offset == 5


def test_no_batches_from_the_leader_change_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")

    appended = log.append_replicated(memoryview(b""), now_ms=NOW_MS)

    assert (appended.base_offset, appended.last_offset, log.end_offset) == (0, -1, 0)


@pytest.mark.parametrize("is_torn", [False, True], ids=["nothing written", "half written"])
@pytest.mark.parametrize(
    "put",
    [append, lambda log: log.append_replicated(batch(base_offset=3, epoch=0), now_ms=NOW_MS)],
    ids=["produced", "replicated"],
)
def test_full_disk_refuses_a_batch_and_accepts_it_later(
    tmp_path: Path, put: Callable[[PartitionLog], object], is_torn: bool
) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", files=files)
    fill(log, 3)
    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=WRITES, is_torn=is_torn))

    with pytest.raises(OutOfSpace) as caught:
        put(log)

    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert caught.value.code.retriable
    path = Path(log.folder) / f"{0:020}.log"
    assert (log.end_offset, path.stat().st_size) == (3, 3 * SIZE)
    files.heal()
    append(log)
    assert spans(content(log)) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_a_short_write_is_continued(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.shorten("pwrite", 50)
    log = open_log(tmp_path / "t-0", files=files)

    fill(log, 3)

    assert spans(content(log)) == [(0, 0), (1, 1), (2, 2)]


def test_a_disk_that_fails_ends_the_log_dir_with_all_its_logs(tmp_path: Path) -> None:
    files = FaultyFiles()
    handles = Handles(files, max_open=16)
    log, other = (open_log(tmp_path / f"t-{index}", handles=handles) for index in range(2))
    fill(log, 2)
    fill(other, 2)
    files.plan(Fault(at=0, error=errno.EIO, kinds=WRITES))

    with pytest.raises(LogDirFailed):
        append(log)

    files.heal()
    for each in (log, other):
        with pytest.raises(LogDirFailed):
            append(each)
        assert each.end_offset == 2
        assert spans(content(each)) == [(0, 0), (1, 1)]


def test_a_cut_that_fails_ends_the_log_dir(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", files=files)
    fault = Fault(
        at=0,
        error=errno.ENOSPC,
        kinds=frozenset({"pwrite", "truncate"}),
        is_torn=True,
        is_lasting=True,
    )
    files.plan(fault)

    with pytest.raises(LogDirFailed, match="truncate"):
        append(log)

    assert log.handles.failure is not None


def test_a_roll_that_finds_no_room_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=2 * SIZE), files=files)
    fill(log, 2)
    files.calls.clear()
    fill(log, 2)
    steps = len(files.calls)
    assert steps > 5

    for step in range(steps - 1):
        files.plan(Fault(at=step, error=errno.ENOSPC))
        before = log.end_offset
        with pytest.raises(OutOfSpace):
            fill(log, 2)
        files.heal()
        fill(log, 2 - (log.end_offset - before))
        assert spans(content(log)) == [(o, o) for o in range(log.end_offset)], f"step {step}"


def test_index_entries_that_find_no_room_refuse_no_batch(tmp_path: Path) -> None:
    files = FaultyFiles()
    config = LogConfig(index_interval_bytes=0)
    log = open_log(tmp_path / "t-0", config, files=files)
    append(log)
    index_files = frozenset({"open"})

    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=index_files, is_lasting=True))
    fill(log, 600)

    assert log.end_offset == 601
    assert log.segments.active.offset_index.file.entries + len(log.segments.active.waiting) > 500
    files.heal()
    log.close()
    path = tmp_path / "t-0" / f"{0:020}.index"
    assert path.stat().st_size == 600 * 8


def test_a_closed_log_takes_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log)
    log.close()

    with pytest.raises(AssertionError, match="closed"):
        append(log)


def test_the_topics_rules_change_with_its_configuration(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")

    log.reconfigure(replace(log.config, rules=ProduceRules(max_batch_bytes=SIZE - 1)))

    assert refusal(log, batch()) is ErrorCode.MESSAGE_TOO_LARGE


def test_an_append_reopens_a_file_that_was_closed_meanwhile(tmp_path: Path) -> None:
    handles = Handles(FaultyFiles(), max_open=1)
    logs = [open_log(tmp_path / f"t-{index}", handles=handles) for index in range(3)]

    for turn in range(4):
        for log in logs:
            append(log)
            log.flush()
            assert handles.open_files == 1
            assert log.end_offset == turn + 1

    assert all(len(spans(content(log))) == 4 for log in logs)


def test_a_batch_is_never_copied_on_its_way(tmp_path: Path) -> None:
    written: list[object] = []

    class Recording(FaultyFiles):
        def pwrite(self, fd: int, data: Buffer, position: int) -> int:
            written.append(data)
            return os.pwrite(fd, data, position)

    log = open_log(tmp_path / "t-0", files=Recording())
    data = batch()

    append(log, data)

    assert written == [data]
    assert written[0] is data
    assert Batch(data).base_offset == 0


def test_a_leader_of_an_older_epoch_is_fenced(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, epoch=5)
    before = content(log)

    with pytest.raises(KafkaError, match=r"epoch 4 .* 5") as caught:
        append(log, epoch=4)

    assert caught.value.code is ErrorCode.FENCED_LEADER_EPOCH
    assert (content(log), log.epochs.entries()) == (before, [(5, 0)])
    append(log, epoch=5)
    log.abandon()
    assert open_log(tmp_path / "t-0").end_offset == 2


def test_a_leader_that_sends_an_older_epoch_than_the_log_has_is_not_believed(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path / "t-0")
    log.append_replicated(batch(epoch=5), now_ms=NOW_MS)
    before = content(log)

    with pytest.raises(KafkaError, match=r"epoch 4.* 5 ") as caught:
        log.append_replicated(batch(base_offset=1, epoch=4), now_ms=NOW_MS)

    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert content(log) == before


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
def test_log_works_without_a_free_descriptor(tmp_path: Path, error: int) -> None:
    files = FaultyFiles()
    config = LogConfig(segment_bytes=40 * SIZE, index_interval_bytes=0)
    log = open_log(tmp_path / "t-0", config, files=files)
    append(log)
    files.plan(Fault(at=0, error=error, kinds=frozenset({"open"}), is_lasting=True))

    with pytest.raises(KafkaError) as caught:
        fill(log, 60)

    assert caught.value.code.retriable
    assert log.end_offset == 40
    files.heal()
    fill(log, 20)
    assert spans(content(log)) == [(n, n) for n in range(60)]
    log.close()
