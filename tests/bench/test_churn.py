"""Clients that churn produce what they say, and all of them are gone in the end."""

import asyncio
from pathlib import Path

import pytest

from bench.churn import Churn, churn
from tests.fakes.broker_thread import BesideBroker, broker_beside
from tests.fakes.listener import until

pytestmark = pytest.mark.slow

PARTITIONS = 4


def job(beside: BesideBroker, *, topic: str = "churn", is_idempotent: bool = False) -> Churn:
    return Churn(
        host=beside.running.host,
        port=beside.running.port,
        topic=topic,
        partitions=PARTITIONS,
        seconds=0.5,
        is_idempotent=is_idempotent,
    )


def ends(beside: BesideBroker) -> list[int]:
    replicas = beside.running.broker.replicas
    return [replicas.leader("churn", index).log.end_offset for index in range(PARTITIONS)]


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_clients_come_produce_and_go(tmp_path: Path, *, is_idempotent: bool) -> None:
    with broker_beside(tmp_path, topics={"churn": PARTITIONS}) as beside:
        came = churn(job(beside, is_idempotent=is_idempotent))

        listener = beside.running.broker.listener
        gone = asyncio.run_coroutine_threadsafe(until(lambda: not listener.clients), beside.loop)
        gone.result()
        opened = beside.running.context.metrics.connections_opened
        assert came.raw >= 10
        assert came.clients >= 2
        assert opened >= came.raw + came.clients
        # Of the raw, at least five in eight are answered; a client produces ten records.
        assert sum(ends(beside)) >= came.raw * 5 // 8 + came.clients * 10
        assert min(ends(beside)) > 0
