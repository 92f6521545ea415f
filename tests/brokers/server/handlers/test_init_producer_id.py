"""InitProducerId: ids for idempotent producers, and what transactional ones are told."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from brokers.cluster.proposals import AllocateProducerIds, Outcome, ProducerIdsResult, Proposal
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.init_producer_id import InitProducerIdRequest
from brokers.server.handlers import init_producer_id
from tests.brokers.replication.parts import Rig, code_of, rig
from tests.builders.logs import append, batch


class IdStore:
    """The part of a metadata store that hands out blocks."""

    def __init__(self) -> None:
        self.proposals: list[Proposal] = []
        self.fault: Exception | None = None

    async def propose(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        self.proposals += proposals
        if self.fault is not None:
            raise self.fault
        first = 1000 * len(self.proposals)
        return [Outcome(result=ProducerIdsResult(first=first, count=1000))]


async def ask(broker: Rig, version: int = 5, **fields: Any) -> Any:
    fields.setdefault("transactional_id", None)
    request = InitProducerIdRequest(transaction_timeout_ms=60_000, **fields)
    answer = await broker.ask_async(init_producer_id, request, version)
    return code_of(answer.error_code), answer.producer_id, answer.producer_epoch


@pytest.mark.parametrize("version", range(6))
def test_every_call_gets_a_fresh_id_with_epoch_zero(tmp_path: Path, version: int) -> None:
    async def run() -> None:
        store = IdStore()
        async with rig(tmp_path, store=store) as broker:
            answers = [await ask(broker, version) for _ in range(3)]

            assert answers == [(ErrorCode.NONE, number, 0) for number in (1000, 1001, 1002)]
            assert [type(p.action) for p in store.proposals] == [AllocateProducerIds]

    asyncio.run(run())


def test_a_block_is_asked_for_above_the_ids_in_the_logs(tmp_path: Path) -> None:
    async def run() -> None:
        store = IdStore()
        async with rig(tmp_path, store=store) as broker:
            append(broker.leader().log, batch(producer=700))

            assert (await ask(broker))[1] == 1000
            assert [p.action for p in store.proposals] == [AllocateProducerIds(highest_seen=700)]

    asyncio.run(run())


def test_an_id_of_before_is_replaced_by_a_fresh_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, store=IdStore()) as broker:
            answer = await ask(broker, producer_id=5, producer_epoch=3)
            assert answer == (ErrorCode.NONE, 1000, 0)

    asyncio.run(run())


REFUSED: list[tuple[str, dict[str, Any], ErrorCode]] = [
    (
        "a transactional id",
        {"transactional_id": "tx"},
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    ("an empty transactional id", {"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
    ("an id without an epoch", {"producer_id": 5}, ErrorCode.INVALID_REQUEST),
    ("an epoch without an id", {"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
]


@pytest.mark.parametrize(("what", "fields", "code"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_wrong_is_refused_for_good(
    tmp_path: Path, what: str, fields: dict[str, Any], code: ErrorCode
) -> None:
    async def run() -> None:
        async with rig(tmp_path, store=IdStore()) as broker:
            assert await ask(broker, **fields) == (code, -1, -1)
            assert not code.retriable

    asyncio.run(run())


def test_without_a_store_the_client_is_asked_to_come_again(tmp_path: Path) -> None:
    async def run() -> None:
        store = IdStore()
        store.fault = ConnectionError("away")
        async with rig(tmp_path, store=store) as broker:
            code, _producer_id, _epoch = await ask(broker)
            assert code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

            store.fault = None
            assert (await ask(broker))[0] is ErrorCode.NONE

    asyncio.run(run())
