"""What a worker knows, holds and ends."""

import asyncio
import json
from pathlib import Path

import pytest

from gateway.rest.codes import ApiError, Code
from gateway.rest.worker import Place, Worker


def worker(home: Path, *, bootstrap: str = "") -> Worker:
    return Worker(Place(name="gateway-1", home=home, sockets=home, bootstrap=bootstrap))


class Held:
    def __init__(self, told: list[str], *, fails: bool = False) -> None:
        self._told = told
        self._fails = fails

    def drain(self) -> None:
        self._told.append("drained")

    async def close(self) -> None:
        if self._fails:
            raise OSError
        self._told.append("closed")


def test_brokers_are_where_the_supervisor_says(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    made = worker(tmp_path)

    with pytest.raises(ApiError) as refused:
        _ = made.connection
    (tmp_path / "run" / "settings.json").write_text(json.dumps({"bootstrap": "127.0.0.1:9092"}))

    assert refused.value.code is Code.UNAVAILABLE
    assert made.connection.bootstrap == "127.0.0.1:9092"


def test_brokers_that_are_given_come_first(tmp_path: Path) -> None:
    assert worker(tmp_path, bootstrap="broker:9092").connection.bootstrap == "broker:9092"


def test_a_cluster_without_an_id_yet_is_told(tmp_path: Path) -> None:
    made = worker(tmp_path)

    with pytest.raises(ApiError) as refused:
        _ = made.cluster_id
    (tmp_path / "cluster-id").write_text("abc\n")

    assert refused.value.retry_after_s == 1
    assert made.cluster_id == "abc"


def test_parts_end_with_the_worker_and_one_that_fails_keeps_no_other(tmp_path: Path) -> None:
    told: list[str] = []
    made = worker(tmp_path)
    made.held(Held(told, fails=True))
    made.held(Held(told))

    made.drain()
    asyncio.run(made.close())

    assert told == ["drained", "drained", "closed"]


def test_a_part_with_last_words_has_its_say_before_the_end(tmp_path: Path) -> None:
    class Speaker(Held):
        async def said(self) -> None:
            told.append("said")

    told: list[str] = []
    made = worker(tmp_path)
    made.held_speaking(Speaker(told))

    async def end() -> None:
        made.drain()
        await made.said()
        await made.close()

    asyncio.run(end())

    assert told == ["drained", "said", "closed"]


def test_a_part_that_comes_while_the_worker_drains_is_drained_at_once(tmp_path: Path) -> None:
    told: list[str] = []
    made = worker(tmp_path)
    made.drain()

    made.held(Held(told))

    assert told == ["drained"]


def test_the_other_workers_are_those_whose_sockets_are_there(tmp_path: Path) -> None:
    for name in ("gateway-1", "gateway-2", "web", "collector", "gateway-x"):
        (tmp_path / f"{name}.sock").touch()

    place = worker(tmp_path).place

    assert place.others() == ["gateway-2", "web"]
    assert place.socket_of("web") == tmp_path / "web.sock"
