"""Every record that matches is found, and what cannot be read is told."""

import base64
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.reader import Record
from brokers.search import log_search
from brokers.search.log_search import LogSearch, PartitionGone
from brokers.search.question import Job, decode_job, encode_job
from brokers.storage.files import LocalFiles
from brokers.storage.log import PartitionLog
from tests.builders.cleaning import clean_now, compacted, compacted_log, rows_of
from tests.builders.logs import NOW_MS, append, open_log
from tests.fakes.clock import ManualClock
from tests.scale import count

GIB = 1 << 30


class Pace(ManualClock):
    """A clock that moves by what is slept, and by a ms for each look."""

    def __init__(self, step_ms: int = 0) -> None:
        super().__init__()
        self.slept = 0.0
        self._step_ms = step_ms

    def monotonic(self) -> float:
        self.advance(self._step_ms)
        return super().monotonic()

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.advance(max(1, int(seconds * 1000)))


def job(log: PartitionLog, where: Any = None, **fields: Any) -> Job:
    values: dict[str, Any] = {
        "folder": log.folder,
        "start": 0,
        "end": log.end_offset,
        "where": where,
        "max_hits": 10_000,
        "max_bytes": GIB,
        "max_shown_bytes": 1_000,
        "max_decompressed_bytes": GIB,
        "bytes_per_second": GIB,
        "seconds": 300.0,
        **fields,
    }
    return decode_job(encode_job(Job(**values)))


def lines_of(
    one: Job, *, pace: Pace | None = None, pulse: Callable[[], None] = lambda: None
) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    told = lambda line: lines.append(json.loads(json.dumps(line)))  # noqa: E731
    LogSearch(LocalFiles(), one, pace=pace or Pace(), tell=told, pulse=pulse).run()
    return lines


def found(one: Job, **how: Any) -> tuple[list[int], dict[str, Any]]:
    """The offsets of hits, and the last line."""
    lines = lines_of(one, **how)
    return [line["offset"] for line in lines if line["kind"] == "hit"], lines[-1]


def contains(text: str, side: str = "value") -> Any:
    return {"contains": {"in": side, "text": text}}


def filled(folder: Path, values: int = 50, *, keys: int = 1_000, **config: Any) -> PartitionLog:
    """A log with one record in each batch, in several segments."""
    log = open_log(folder, compacted(segment_bytes=1_000, **config))
    for number in range(values):
        builder = BatchBuilder()
        value = b"needle %03d" % number if number % 10 == 7 else b"hay %03d" % number
        builder.append(
            b"k%d" % (number % keys), value, [(b"h", b"%d" % (number % 3))], NOW_MS + number
        )
        append(log, memoryview(builder.build()))
    log.flush()
    return log


WORDS = ("hay", "straw", "needle", "Needle", "nee", "dle", "")


def random_predicate(rng: random.Random, depth: int = 0) -> Any:
    kinds = ["contains", "key", "header", "json"] + (["all", "any", "not"] if depth < 3 else [])
    kind = rng.choice(kinds)
    if kind in ("all", "any"):
        return {kind: [random_predicate(rng, depth + 1) for _ in range(rng.randint(1, 3))]}
    if kind == "not":
        return {kind: random_predicate(rng, depth + 1)}
    if kind == "contains":
        side, word = rng.choice(["key", "value"]), rng.choice(WORDS)
        return {kind: {"in": side, "text": word, "ignore_case": rng.random() < 0.5}}
    if kind == "key":
        return {kind: rng.choice([None, {"text": f"k{rng.randint(0, 9)}"}])}
    if kind == "header":
        wanted = {"name": rng.choice("ab")}
        return {kind: wanted if rng.random() < 0.5 else {**wanted, "text": rng.choice(WORDS)}}
    op = rng.choice(["==", "!=", "<", "<=", ">", ">=", "exists"])
    compared = {} if op == "exists" else {"value": rng.choice([rng.randint(0, 9), "hay"])}
    return {kind: {"path": [rng.choice(["n", "s", "l"])], "op": op, **compared}}


def holds(tree: Any, record: Record) -> bool:
    """The same as the product decides, in the plainest way."""
    ((kind, told),) = tree.items()
    if kind == "all":
        return all(holds(one, record) for one in told)
    if kind == "any":
        return any(holds(one, record) for one in told)
    if kind == "not":
        return not holds(told, record)
    if kind == "key":
        return record.key == (None if told is None else told["text"].encode())
    if kind == "header":
        return any(
            key == told["name"].encode() and ("text" not in told or value == told["text"].encode())
            for key, value in record.headers
        )
    if kind == "contains":
        data = record.key if told["in"] == "key" else record.value
        if data is None:
            return False
        pair = data.decode("latin-1"), told["text"]
        text, word = (one.lower() for one in pair) if told["ignore_case"] else pair
        return word in text
    return holds_in_json(told, record.value)


def holds_in_json(told: Any, value: bytes | None) -> bool:
    try:
        here = json.loads(value or b"x")[told["path"][0]]
    except (ValueError, TypeError, KeyError):
        return False
    op, wanted = told["op"], told.get("value")
    is_alike = isinstance(here, str) == isinstance(wanted, str) and not isinstance(here, list)
    decided: dict[str, Callable[[], bool]] = {
        "exists": lambda: True,
        "==": lambda: is_alike and here == wanted,
        "!=": lambda: not is_alike or here != wanted,
        "<": lambda: is_alike and here < wanted,
        "<=": lambda: is_alike and here <= wanted,
        ">": lambda: is_alike and here > wanted,
        ">=": lambda: is_alike and here >= wanted,
    }
    return decided[op]()


def random_value(rng: random.Random) -> bytes | None:
    if rng.random() < 0.1:
        return None
    if rng.random() < 0.5:
        fields = {"n": rng.randint(0, 9), "s": rng.choice(WORDS), "l": [1]}
        return json.dumps(dict(rng.sample(sorted(fields.items()), rng.randint(0, 3)))).encode()
    return " ".join(rng.choices(WORDS, k=rng.randint(0, 4))).encode()


def random_log(folder: Path, rng: random.Random) -> PartitionLog:
    log = compacted_log(folder, compacted(segment_bytes=rng.choice([500, 3_000])))
    for number in range(rng.randint(1, 40)):
        builder = BatchBuilder(compression=rng.choice(list(Compression)))
        for _ in range(rng.randint(1, 8)):
            # A compacted topic has a key in each record.
            headers = [(rng.choice([b"a", b"b"]), rng.choice([b"needle", b""]))][
                : rng.randint(0, 1)
            ]
            builder.append(b"k%d" % rng.randint(0, 30), random_value(rng), headers, NOW_MS + number)
        append(log, memoryview(builder.build()))
    log.flush()
    if len(log.segments) > 1 and rng.random() < 0.5:
        clean_now(log)
    return log


@pytest.mark.parametrize("seed", range(count(30, 60, long=1_000)))
def test_a_search_finds_what_a_look_at_every_record_finds(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    log = random_log(tmp_path, rng)
    every = rows_of(log)
    for _ in range(10):
        where = random_predicate(rng)
        start = rng.randint(0, log.end_offset)
        end = rng.randint(start, log.end_offset)

        hits, done = found(job(log, where, start=start, end=end))

        wanted = [r.offset for r in every if start <= r.offset < end and holds(where, r)]
        assert hits == wanted, (seed, where)
        assert done["verdict"] == "complete"
        assert done["damaged"] == done["removed"] == []
        assert done["next_offset"] == max(start, end)


def test_a_hit_tells_the_record_and_cuts_what_is_long(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    builder = BatchBuilder()
    builder.append(b"key", b"v" * 30, [(b"name", b"x"), (b"null", None)], NOW_MS)
    builder.append(None, None, [], NOW_MS)
    append(log, memoryview(builder.build()))
    log.flush()

    first, second, _done = lines_of(job(log, max_shown_bytes=8))

    assert first["key"] == base64.b64encode(b"key").decode()
    assert first["value"] == base64.b64encode(b"v" * 8).decode()
    assert first["headers"] == [["name", base64.b64encode(b"x").decode()]]
    assert (first["key_bytes"], first["value_bytes"], first["is_cut"]) == (3, 30, True)
    assert (first["timestamp"], first["offset"]) == (NOW_MS, 0)
    assert (second["key"], second["value"], second["is_cut"]) == (None, None, False)


def test_a_search_ends_at_its_limit_and_another_goes_on_from_there(tmp_path: Path) -> None:
    log = filled(tmp_path)

    hits, done = found(job(log, contains("needle"), max_hits=2))
    rest, last = found(job(log, contains("needle"), start=done["next_offset"]))

    assert (hits, done["verdict"], done["next_offset"]) == ([7, 17], "limit", 18)
    assert (rest, last["verdict"]) == ([27, 37, 47], "complete")


def test_a_search_reads_no_more_than_it_may(tmp_path: Path) -> None:
    log = filled(tmp_path)

    hits, done = found(job(log, contains("needle"), max_bytes=log.size_bytes // 2))

    assert done["verdict"] == "budget"
    assert done["bytes"] < log.size_bytes * 0.6
    rest, last = found(job(log, contains("needle"), start=done["next_offset"]))
    assert hits + rest == [7, 17, 27, 37, 47]
    assert last["verdict"] == "complete"


def test_a_search_keeps_to_its_pace_and_tells_how_far_it_is(tmp_path: Path) -> None:
    log, pace = filled(tmp_path), Pace()

    lines = lines_of(job(log, bytes_per_second=log.size_bytes // 2, where=contains("x")), pace=pace)

    assert 1.8 < pace.monotonic() < 2.2
    progress = [line["next_offset"] for line in lines if line["kind"] == "progress"]
    assert 6 <= len(progress) <= 8
    assert progress == sorted(progress)


def test_a_search_whose_time_is_over_stops(tmp_path: Path) -> None:
    log = filled(tmp_path)

    _hits, done = found(job(log, contains("x"), seconds=0.02), pace=Pace(step_ms=1))

    assert done["verdict"] == "stopped"
    assert 0 < done["next_offset"] < log.end_offset


def test_a_search_ends_with_the_process_that_wants_it(tmp_path: Path) -> None:
    class GoneError(Exception):
        pass

    def gone() -> None:
        raise GoneError

    with pytest.raises(GoneError):
        lines_of(job(filled(tmp_path)), pulse=gone)


def test_a_search_from_the_middle_reads_little_of_what_lies_in_front(tmp_path: Path) -> None:
    log = filled(tmp_path, 500, index_interval_bytes=200)
    one = job(log, start=490)

    hits, done = found(one)

    assert hits == list(range(490, 500))
    assert done["bytes"] < 20 * 100


# -- what happens to files meanwhile -------------------------------------------------------------


class Meanwhile:
    """Does something once, when the search has come so far."""

    def __init__(self, count: int, action: Callable[[], None]) -> None:
        self.left = count
        self.action = action

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.action()


def logs_of(log: PartitionLog) -> list[Path]:
    return sorted(Path(log.folder).glob("*.log"))


def test_files_that_are_removed_before_they_are_read_are_told(tmp_path: Path) -> None:
    log = filled(tmp_path)
    files = logs_of(log)
    bases = [int(file.stem) for file in files]

    def remove() -> None:
        for file in files[:4]:
            os.rename(file, f"{file}.deleted")

    hits, done = found(job(log), pulse=Meanwhile(1, remove))

    # The first one was open already and is read to its end.
    assert done["verdict"] == "removed"
    assert done["removed"] == [[bases[1], bases[4]]]
    assert hits == [*range(bases[1]), *range(bases[4], 50)]


def test_a_cleaned_file_that_takes_the_place_of_several_is_read_from_where_the_search_is(
    tmp_path: Path,
) -> None:
    log = filled(tmp_path, keys=5)
    files = len(logs_of(log))

    def clean() -> None:
        log.reconfigure(compacted(segment_bytes=5_000))
        clean_now(log)

    hits, done = found(job(log), pulse=Meanwhile(20, clean))

    assert len(logs_of(log)) < files / 2
    assert done["verdict"] == "complete"
    assert {record.offset for record in rows_of(log)} <= set(hits)
    assert hits == sorted(set(hits))
    assert 20 < len(hits) < 50


def test_a_partition_that_is_deleted_meanwhile_ends_the_search(tmp_path: Path) -> None:
    log = filled(tmp_path / "a")

    def delete() -> None:
        os.rename(log.folder, tmp_path / "b")

    with pytest.raises(PartitionGone, match="the topic was deleted"):
        lines_of(job(log), pulse=Meanwhile(1, delete))


def test_files_that_go_faster_than_they_can_be_opened_end_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_search, "MAX_RETRIES", 3)
    log = filled(tmp_path)

    class Vanishing(LocalFiles):
        def open(self, path: str, flags: int) -> int:
            raise FileNotFoundError(path)

    with pytest.raises(FileNotFoundError):
        LogSearch(
            Vanishing(), job(log), pace=Pace(), tell=lambda _line: None, pulse=lambda: None
        ).run()


def test_a_listing_that_misses_a_file_loses_nothing(tmp_path: Path) -> None:
    log = filled(tmp_path)
    missed = logs_of(log)[2].name

    class Renaming(LocalFiles):
        listings = 0

        def list_folder(self, path: str) -> list[str]:
            self.listings += 1
            names = super().list_folder(path)
            return [name for name in names if name != missed] if self.listings == 1 else names

    lines: list[dict[str, Any]] = []
    LogSearch(Renaming(), job(log), pace=Pace(), tell=lines.append, pulse=lambda: None).run()

    assert [line["offset"] for line in lines[:-1]] == list(range(50))
    assert lines[-1]["verdict"] == "complete"


# -- damage --------------------------------------------------------------------------------------


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("at", [16, 70], ids=["magic", "records"])
def test_a_damaged_batch_is_told_and_all_others_are_searched(tmp_path: Path, at: int) -> None:
    log = filled(tmp_path)
    path = logs_of(log)[1]
    size = path.stat().st_size // (int(logs_of(log)[2].stem) - int(path.stem))
    lost = int(path.stem) + 2
    flip(path, 2 * size + at)

    hits, done = found(job(log))

    assert done["verdict"] == "damaged"
    assert done["damaged"] == [[lost, lost + 1]]
    assert hits == [offset for offset in range(50) if offset != lost]


def test_damage_up_to_the_end_of_a_file_ends_where_the_next_one_begins(tmp_path: Path) -> None:
    log = filled(tmp_path)
    first, second = logs_of(log)[:2]
    first.write_bytes(b"\xff" * first.stat().st_size)

    hits, done = found(job(log))

    assert done["damaged"] == [[0, int(second.stem)]]
    assert hits == list(range(int(second.stem), 50))


def test_a_search_gives_up_where_there_are_too_many_places_of_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_search, "MAX_GAPS", 1)
    log = filled(tmp_path)
    for path in logs_of(log)[1:5]:
        flip(path, 16)

    _hits, done = found(job(log))

    assert done["verdict"] == "damaged"
    assert len(done["damaged"]) == 2
    assert done["next_offset"] < log.end_offset
