"""Batches of version 3: each entry is written, or refused by itself."""

from collections.abc import Iterator
from typing import Any

import pytest

from gateway.kafka.connection import Connection
from tests.fakes.broker_thread import broker_beside
from tests.fakes.rest_door import CLUSTER
from tests.gateway.rest.produce.stage import Stage, on_loop

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with broker_beside(tmp_path_factory.mktemp("broker"), topics={"one": 1, "four": 4}) as broker:
        yield Connection(bootstrap=broker.bootstrap)


@pytest.fixture
def stage(connection: Connection) -> Stage:
    return Stage(connection)


BATCH = f"/clusters/{CLUSTER}/topics/four/records:batch"


def entry(name: str, **more: object) -> dict[str, Any]:
    return {"id": name, "value": {"type": "JSON", "data": {"n": 1}}, **more}


@on_loop
async def test_entries_are_told_apart_by_their_ids(stage: Stage) -> None:
    entries = [
        entry("a", partition_id=2),
        entry("b", partition_id=9),
        entry("c", value={"type": "AVRO", "data": 1}),
        entry("d", partition_id="two"),
        entry("e", partition_id=2, key={"type": "STRING", "data": "k"}),
    ]

    answer = await stage.door.post(BATCH, {"entries": entries})

    told = answer.json()
    assert answer.status == 207
    assert [each["id"] for each in told["successes"]] == ["a", "e"]
    first, last = told["successes"]
    assert last == {
        "id": "e",
        "cluster_id": CLUSTER,
        "topic_name": "four",
        "partition_id": 2,
        "offset": first["offset"] + 1,
        "timestamp": last["timestamp"],
        "key": {"type": "STRING", "size": 1},
        "value": {"type": "JSON", "size": 7},
    }
    assert [(each["id"], each["error_code"]) for each in told["failures"]] == [
        ("b", 40402),
        ("c", 422),
        ("d", 422),
    ]


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [entry(str(n)) for n in range(11)],
        [entry("a"), entry("a")],
        [entry("")],
        [entry("x" * 81)],
        [{"value": {"type": "JSON", "data": 1}}],
        [{"id": 7}],
        ["a"],
        None,
    ],
)
@on_loop
async def test_a_batch_whose_entries_cannot_be_told_apart_is_refused(
    stage: Stage, entries: object
) -> None:
    answer = await stage.door.post(BATCH, {"entries": entries})

    assert (answer.status, answer.json()["error_code"]) == (422, 42208)


@pytest.mark.parametrize("body", [b"", b"{", b'{"entries":[{"id":"\xff"}]}', b"[" * 5_000])
@on_loop
async def test_a_body_that_is_no_json_is_refused(stage: Stage, body: bytes) -> None:
    answer = await stage.door.post(BATCH, body)

    assert answer.status in {400, 422}
