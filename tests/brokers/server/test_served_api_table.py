"""Every version that is announced, answered exactly: once a right request and once a wrong one.

The table is whole or the test fails: what ApiVersions announces must stand in it, in every version,
and nothing else may. Each API is asked over a socket of a whole broker.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from brokers.protocol.apis import APIS
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.api_versions import ApiVersionsRequest
from brokers.protocol.messages.list_config_resources import ListConfigResourcesRequest
from brokers.protocol.messages.produce import ProduceRequest
from brokers.protocol.schema import Message
from brokers.server.dispatch import MAX_TRAILING_BYTES
from brokers.server.served import HANDLERS
from tests.brokers.server import (
    api_rows_absent,
    api_rows_groups,
    api_rows_groups_told,
    api_rows_metadata,
    api_rows_offsets,
    api_rows_records,
)
from tests.brokers.server.api_rows import Row, World, as_of, error_codes
from tests.brokers.server.api_rows_group_steps import DEFAULTS
from tests.fakes.broker import RunningBroker, running_broker
from tests.fakes.listener import ByteClient, request_frame

ROWS = (
    *api_rows_records.ROWS,
    *api_rows_offsets.ROWS,
    *api_rows_groups.ROWS,
    *api_rows_groups_told.ROWS,
    *api_rows_metadata.ROWS,
    *api_rows_absent.ROWS,
)
SERVED = {module.SERVED.key: module.SERVED.api() for module in HANDLERS}
# Announced, because librdkafka compresses only if it sees 0, and refused by closing.
ANNOUNCED_ONLY = {(0, 0), (0, 1), (0, 2)}
# Codes that say that nobody thought of the case.
THOUGHTLESS = {ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNSUPPORTED_VERSION}


def announced() -> set[tuple[int, int]]:
    return {
        (key, version)
        for key, api in SERVED.items()
        for version in range(api.advertised[0], api.advertised[1] + 1)
    }


def covered(rows: Iterable[Row]) -> set[tuple[int, int]]:
    return {
        (row.key, version)
        for row in rows
        for version in range(row.versions[0], row.versions[1] + 1)
    }


@pytest.mark.parametrize("is_right", [True, False])
def test_every_announced_version_has_a_row(*, is_right: bool) -> None:
    rows = covered(row for row in ROWS if row.is_right is is_right)

    assert rows == announced() - ANNOUNCED_ONLY


def test_the_ranges_are_those_of_the_release() -> None:
    ranges = {api.name: api.advertised for api in SERVED.values()}

    assert ranges == {
        "Produce": (0, 11),
        "Fetch": (4, 18),
        "ListOffsets": (1, 11),
        "Metadata": (0, 13),
        "OffsetCommit": (2, 10),
        "OffsetFetch": (1, 10),
        "FindCoordinator": (0, 6),
        "JoinGroup": (0, 9),
        "Heartbeat": (0, 4),
        "LeaveGroup": (0, 5),
        "SyncGroup": (0, 5),
        "DescribeGroups": (0, 6),
        "ListGroups": (0, 5),
        "ApiVersions": (0, 4),
        "CreateTopics": (2, 7),
        "DeleteTopics": (1, 6),
        "DeleteRecords": (0, 2),
        "InitProducerId": (0, 5),
        "OffsetForLeaderEpoch": (2, 4),
        "DescribeConfigs": (1, 4),
        "AlterConfigs": (0, 2),
        "DescribeLogDirs": (1, 5),
        "CreatePartitions": (0, 3),
        "DeleteGroups": (0, 2),
        "IncrementalAlterConfigs": (0, 1),
        "OffsetDelete": (0, 0),
        "DescribeCluster": (0, 2),
        "DescribeProducers": (0, 0),
        "DescribeAcls": (1, 3),
        "CreateAcls": (1, 3),
        "DeleteAcls": (1, 3),
        "ElectLeaders": (0, 2),
        "ListPartitionReassignments": (0, 0),
        "DescribeClientQuotas": (0, 1),
        "DescribeUserScramCredentials": (0, 0),
        "ConsumerGroupHeartbeat": (0, 1),
        "ConsumerGroupDescribe": (0, 1),
        "ListConfigResources": (0, 1),
        "DescribeTopicPartitions": (0, 0),
    }


def test_no_row_expects_a_code_that_says_nothing() -> None:
    assert not [row for row in ROWS if row.error in THOUGHTLESS]


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(SERVED), ids=lambda key: APIS[key].name)
def test_every_version_answers_as_the_table_says(tmp_path: Path, key: int) -> None:
    async def scenario() -> list[str]:
        async with running_broker(tmp_path, defaults=DEFAULTS) as broker:
            wrong: list[str] = []
            for version in range(SERVED[key].versions[0], SERVED[key].versions[1] + 1):
                for row in ROWS:
                    if row.key == key and row.covers(version):
                        async with connected(broker) as client:
                            world = World(broker, client, tmp_path)
                            wrong += await difference(world, row, version)
            return wrong

    assert asyncio.run(scenario()) == []


async def difference(world: World, row: Row, version: int) -> list[str]:
    """What is not as the row says, in words; empty where all is well."""
    what = f"{APIS[row.key].name} v{version}, {'right' if row.is_right else 'wrong'}"
    if row.before is not None:
        await row.before(world, version)
    request = row.request(world, version)
    if row.closes:
        frame = request_frame(request, version) + bytes(MAX_TRAILING_BYTES + 1)
        world.client.writer.write((len(frame) - 4).to_bytes(4, "big") + frame[4:])
        return [] if await world.client.is_closed() else [f"{what}: the connection stays"]
    assert row.answer is not None, f"{what}: there is nothing to expect"
    answer = await world.client.ask(request, version)
    codes, allowed = set(error_codes(answer)), {row.error} - {None}
    if codes != allowed:
        return [f"{what}: has errors {codes}, not {allowed}: {answer}"]
    expected = as_of(row.answer(world, version), version)
    return [] if answer == expected else [f"{what}:\n  {answer}\n  {expected}"]


@asynccontextmanager
async def connected(broker: RunningBroker) -> AsyncIterator[ByteClient]:
    client = await broker.connect()
    try:
        yield client
    finally:
        await client.close()


def as_version(message: Message, version: int, claimed: int) -> bytes:
    """A request in one version that claims to be of another."""
    frame = request_frame(message, version)
    return frame[:6] + claimed.to_bytes(2, "big") + frame[8:]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_versions_of_produce_that_are_only_announced_close_the_connection(
    tmp_path: Path, version: int
) -> None:
    async def scenario() -> bool:
        async with running_broker(tmp_path) as broker, connected(broker) as client:
            client.writer.write(as_version(ProduceRequest(acks=1, timeout_ms=1), 3, version))
            return await client.is_closed()

    assert asyncio.run(scenario())


def test_a_version_of_api_versions_that_is_too_new_is_answered_and_asked_again(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with running_broker(tmp_path) as broker, connected(broker) as client:
            newest = ApiVersionsRequest(client_software_name="x", client_software_version="1")
            client.writer.write(as_version(newest, 4, 9))
            refused = await client.answer(APIS[18].response, 0)
            accepted = await client.ask(newest, refused.api_keys[0].max_version)

        assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(row.api_key, row.min_version, row.max_version) for row in refused.api_keys] == [
            (18, 0, 4)
        ]
        assert accepted.error_code == ErrorCode.NONE

    asyncio.run(scenario())


def test_a_type_of_resource_that_only_a_newer_broker_may_know_is_an_unknown_version(
    tmp_path: Path,
) -> None:
    async def scenario() -> int:
        async with running_broker(tmp_path) as broker, connected(broker) as client:
            request = ListConfigResourcesRequest(resource_types=[64])
            return int((await client.ask(request, 1)).error_code)

    assert asyncio.run(scenario()) == ErrorCode.UNSUPPORTED_VERSION
