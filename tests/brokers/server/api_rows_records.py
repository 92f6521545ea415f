"""The rows of the APIs that read and write records."""

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from brokers.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from brokers.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from brokers.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from brokers.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from brokers.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from brokers.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tests.brokers.server.api_rows import (
    A_PRODUCER_ID,
    A_SENTENCE,
    A_SIZE,
    RECORDS,
    Row,
    World,
    make_filled_topic,
    make_topic,
    name_of,
)
from tests.builders.logs import NOW_MS, batch

NO_TOPIC = b"\xee" * 16
NOBODY = "nobody"
PRODUCER = 4711
_IDS_SINCE = 13  # of Fetch


def _produce(world: World, version: int, *, name: str = "") -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch(records=RECORDS))
    topic = TopicProduceData(name=name or name_of(world, version), partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])


def _produced(world: World, version: int) -> ProduceResponse:
    answer = PartitionProduceResponse(index=0, base_offset=0, log_start_offset=0)
    return ProduceResponse(
        responses=[TopicProduceResponse(name=name_of(world, version), partition_responses=[answer])]
    )


def _not_produced(_world: World, _version: int) -> ProduceResponse:
    answer = PartitionProduceResponse(
        index=0,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        base_offset=-1,
        log_start_offset=-1,
        error_message=A_SENTENCE,
    )
    return ProduceResponse(
        responses=[TopicProduceResponse(name=NOBODY, partition_responses=[answer])]
    )


def _fetch(world: World, version: int, *, is_known: bool = True) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    topic = FetchTopic(partitions=[wanted])
    if version >= _IDS_SINCE:
        topic.topic_id = world.topic(name_of(world, version)).id if is_known else NO_TOPIC
    else:
        topic.topic = name_of(world, version) if is_known else NOBODY
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1_000_000, topics=[topic])


def _fetched(world: World, version: int) -> FetchResponse:
    name = name_of(world, version)
    data = PartitionData(
        partition_index=0,
        high_watermark=RECORDS,
        last_stable_offset=RECORDS,
        log_start_offset=0,
        aborted_transactions=None,
        records=batch(records=RECORDS, epoch=0),
    )
    topic = FetchableTopicResponse(topic=name, topic_id=world.topic(name).id, partitions=[data])
    return FetchResponse(responses=[topic])


def _not_fetched(_world: World, version: int) -> FetchResponse:
    by_id = version >= _IDS_SINCE
    data = PartitionData(
        partition_index=0,
        error_code=ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=None,
        records=b"",
    )
    topic = FetchableTopicResponse(topic=NOBODY, topic_id=NO_TOPIC, partitions=[data])
    return FetchResponse(responses=[topic])


def _list_offsets(world: World, version: int, *, name: str = "") -> ListOffsetsRequest:
    latest = ListOffsetsPartition(partition_index=0, timestamp=-1)
    by_time = ListOffsetsPartition(partition_index=0, timestamp=NOW_MS + 1)
    own = ListOffsetsTopic(name=name or name_of(world, version), partitions=[latest])
    other = ListOffsetsTopic(name=f"dated-{version}", partitions=[by_time])
    return ListOffsetsRequest(replica_id=-1, topics=[own] if name else [own, other])


async def _make_both(world: World, version: int) -> None:
    await world.fill(name_of(world, version))
    await world.fill(f"dated-{version}")


def _listed(world: World, version: int) -> ListOffsetsResponse:
    epoch = 0 if version >= 4 else -1
    latest = ListOffsetsPartitionResponse(partition_index=0, offset=RECORDS, leader_epoch=epoch)
    by_time = ListOffsetsPartitionResponse(
        partition_index=0, timestamp=NOW_MS + 1, offset=1, leader_epoch=epoch
    )
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=name_of(world, version), partitions=[latest]),
            ListOffsetsTopicResponse(name=f"dated-{version}", partitions=[by_time]),
        ]
    )


def _not_listed(_world: World, _version: int) -> ListOffsetsResponse:
    refused = ListOffsetsPartitionResponse(
        partition_index=0, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=NOBODY, partitions=[refused])])


def _init_producer_id(
    _world: World, _version: int, *, transactional_id: str | None = None
) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)


def _epoch_end(world: World, version: int, *, name: str = "") -> OffsetForLeaderEpochRequest:
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=0, leader_epoch=0)
    topic = OffsetForLeaderTopic(topic=name or name_of(world, version), partitions=[wanted])
    return OffsetForLeaderEpochRequest(topics=[topic])


def _epoch_ended(world: World, version: int) -> OffsetForLeaderEpochResponse:
    end = EpochEndOffset(partition=0, leader_epoch=0, end_offset=RECORDS)
    topic = OffsetForLeaderTopicResult(topic=name_of(world, version), partitions=[end])
    return OffsetForLeaderEpochResponse(topics=[topic])


def _no_epoch(_world: World, _version: int) -> OffsetForLeaderEpochResponse:
    end = EpochEndOffset(
        partition=0,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        leader_epoch=-1,
        end_offset=-1,
    )
    return OffsetForLeaderEpochResponse(
        topics=[OffsetForLeaderTopicResult(topic=NOBODY, partitions=[end])]
    )


def _delete_records(world: World, version: int, *, offset: int = 2) -> DeleteRecordsRequest:
    wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name=name_of(world, version), partitions=[wanted])
    return DeleteRecordsRequest(topics=[topic], timeout_ms=10_000)


def _deleted(
    world: World, version: int, *, error: ErrorCode = ErrorCode.NONE
) -> DeleteRecordsResponse:
    result = DeleteRecordsPartitionResult(
        partition_index=0, low_watermark=-1 if error else 2, error_code=error
    )
    topic = DeleteRecordsTopicResult(name=name_of(world, version), partitions=[result])
    return DeleteRecordsResponse(topics=[topic])


async def _make_produced(world: World, version: int) -> None:
    await world.fill(name_of(world, version), producer=PRODUCER)


def _producers(world: World, version: int, *, name: str = "") -> DescribeProducersRequest:
    topic = TopicRequest(name=name or name_of(world, version), partition_indexes=[0])
    return DescribeProducersRequest(topics=[topic])


def _described_producers(world: World, version: int) -> DescribeProducersResponse:
    producer = ProducerState(
        producer_id=PRODUCER,
        producer_epoch=0,
        last_sequence=RECORDS - 1,
        last_timestamp=A_SIZE,
        coordinator_epoch=-1,
        current_txn_start_offset=-1,
    )
    partition = PartitionResponse(partition_index=0, active_producers=[producer])
    topic = TopicResponse(name=name_of(world, version), partitions=[partition])
    return DescribeProducersResponse(topics=[topic])


def _no_producers(_world: World, _version: int) -> DescribeProducersResponse:
    partition = PartitionResponse(
        partition_index=0,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=A_SENTENCE,
    )
    return DescribeProducersResponse(topics=[TopicResponse(name=NOBODY, partitions=[partition])])


def _log_dirs(world: World, version: int) -> DescribeLogDirsRequest:
    topics = [
        DescribableLogDirTopic(topic=name_of(world, version), partitions=[0, 9]),
        DescribableLogDirTopic(topic=NOBODY, partitions=[0]),
    ]
    return DescribeLogDirsRequest(topics=topics)


def _described_log_dirs(world: World, version: int) -> DescribeLogDirsResponse:
    partition = DescribeLogDirsPartition(
        partition_index=0, partition_size=len(batch(records=RECORDS)), offset_lag=0
    )
    result = DescribeLogDirsResult(
        log_dir=world.log_dir,
        topics=[DescribeLogDirsTopic(name=name_of(world, version), partitions=[partition])],
        total_bytes=A_SIZE if version >= 4 else -1,
        usable_bytes=A_SIZE if version >= 4 else -1,
    )
    return DescribeLogDirsResponse(results=[result])


_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

ROWS = (
    Row(key=0, versions=(3, 11), before=make_topic, request=_produce, answer=_produced),
    Row(
        key=0,
        versions=(3, 11),
        request=lambda world, version: _produce(world, version, name=NOBODY),
        answer=_not_produced,
        error=_UNKNOWN,
    ),
    Row(key=1, versions=(4, 18), before=make_filled_topic, request=_fetch, answer=_fetched),
    Row(
        key=1,
        versions=(4, 12),
        request=lambda world, version: _fetch(world, version, is_known=False),
        answer=_not_fetched,
        error=_UNKNOWN,
    ),
    Row(
        key=1,
        versions=(13, 18),
        request=lambda world, version: _fetch(world, version, is_known=False),
        answer=_not_fetched,
        error=ErrorCode.UNKNOWN_TOPIC_ID,
    ),
    Row(key=2, versions=(1, 11), before=_make_both, request=_list_offsets, answer=_listed),
    Row(
        key=2,
        versions=(1, 11),
        request=lambda world, version: _list_offsets(world, version, name=NOBODY),
        answer=_not_listed,
        error=_UNKNOWN,
    ),
    Row(
        key=21, versions=(0, 2), before=make_filled_topic, request=_delete_records, answer=_deleted
    ),
    Row(
        key=21,
        versions=(0, 2),
        request=lambda world, version: _delete_records(world, version, offset=RECORDS + 1),
        answer=lambda world, version: _deleted(world, version, error=ErrorCode.OFFSET_OUT_OF_RANGE),
        error=ErrorCode.OFFSET_OUT_OF_RANGE,
    ),
    Row(
        key=22,
        versions=(0, 5),
        request=_init_producer_id,
        answer=lambda _world, _version: InitProducerIdResponse(
            producer_id=A_PRODUCER_ID, producer_epoch=0
        ),
    ),
    Row(
        key=22,
        versions=(0, 5),
        request=lambda world, version: _init_producer_id(world, version, transactional_id="t"),
        answer=lambda _world, _version: InitProducerIdResponse(
            error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            producer_id=-1,
            producer_epoch=-1,
        ),
        error=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    Row(key=23, versions=(2, 4), before=make_filled_topic, request=_epoch_end, answer=_epoch_ended),
    Row(
        key=23,
        versions=(2, 4),
        request=lambda world, version: _epoch_end(world, version, name=NOBODY),
        answer=_no_epoch,
        error=_UNKNOWN,
    ),
    Row(
        key=35,
        versions=(1, 5),
        before=make_filled_topic,
        request=_log_dirs,
        answer=_described_log_dirs,
    ),
    # No request for log dirs can be refused but by its form.
    Row(key=35, versions=(1, 5), request=_log_dirs, closes=True),
    Row(
        key=61,
        versions=(0, 0),
        before=_make_produced,
        request=_producers,
        answer=_described_producers,
    ),
    Row(
        key=61,
        versions=(0, 0),
        request=lambda world, version: _producers(world, version, name=NOBODY),
        answer=_no_producers,
        error=_UNKNOWN,
    ),
)
