"""The way to the coordinator of a group: what is refused before anybody is asked."""

import asyncio
from pathlib import Path

import pytest

from brokers.coordination.groups.settings import MAX_ID_BYTES
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.server.coordinators import group_settings
from tests.fakes.broker import running_broker


def test_what_a_broker_was_started_with_reaches_its_groups() -> None:
    told = {"group.initial.rebalance.delay.ms": "0", "group.consumer.migration.policy": "disabled"}

    settings = group_settings(told)

    assert settings.initial_rebalance_delay_ms == 0
    assert settings.max_session_timeout_ms == 1_800_000
    assert not settings.migration_policy.allows_upgrade


def test_a_name_is_measured_before_it_is_looked_for(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"__consumer_offsets": 2}) as running:
            groups = running.context.groups
            for ask in (groups.node_of, lambda name: groups.look(name, lambda _shard: None)):
                with pytest.raises(KafkaError) as refused:
                    ask("g" * (MAX_ID_BYTES + 1))
                assert refused.value.code is ErrorCode.INVALID_GROUP_ID

    asyncio.run(story())


def test_a_coordinator_that_does_not_know_its_topic_yet_says_that_it_loads(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path) as running:
            groups = running.context.groups
            with pytest.raises(KafkaError) as refused:
                groups.look("g", lambda _shard: None)
            assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            with pytest.raises(KafkaError) as away:
                groups.node_of("g")
            assert away.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE

    asyncio.run(story())
