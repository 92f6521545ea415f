"""The rows of the APIs that speak of the cluster, its topics and their configuration."""

from brokers.cluster import topic_configs
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages import alter_configs as whole
from brokers.protocol.messages import incremental_alter_configs as single
from brokers.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from brokers.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from brokers.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from brokers.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from brokers.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from brokers.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from brokers.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from brokers.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from brokers.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.brokers.server.api_rows import (
    A_SENTENCE,
    AN_ID,
    Row,
    World,
    make_topic,
    name_of,
)

TOPIC, BROKER, LOGGER = 2, 4, 8
ALL_OF_A_TOPIC, ALL_OF_A_CLUSTER = 3576, 8096
NOBODY = "nobody"
_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

# What is served: key, lowest and highest version announced.
ANNOUNCED = (
    (0, 0, 11),
    (1, 4, 18),
    (2, 1, 11),
    (3, 0, 13),
    (8, 2, 10),
    (9, 1, 10),
    (10, 0, 6),
    (11, 0, 9),
    (12, 0, 4),
    (13, 0, 5),
    (14, 0, 5),
    (15, 0, 6),
    (16, 0, 5),
    (18, 0, 4),
    (19, 2, 7),
    (20, 1, 6),
    (21, 0, 2),
    (22, 0, 5),
    (23, 2, 4),
    (29, 1, 3),
    (30, 1, 3),
    (31, 1, 3),
    (32, 1, 4),
    (33, 0, 2),
    (35, 1, 5),
    (37, 0, 3),
    (42, 0, 2),
    (43, 0, 2),
    (44, 0, 1),
    (46, 0, 0),
    (47, 0, 0),
    (48, 0, 1),
    (50, 0, 0),
    (60, 0, 2),
    (61, 0, 0),
    (68, 0, 1),
    (69, 0, 1),
    (74, 0, 1),
    (75, 0, 0),
)


# -- ApiVersions, Metadata, DescribeCluster ------------------------------------------------------


def _api_versions(_world: World, version: int, *, name: str = "table") -> ApiVersionsRequest:
    if version < 3:
        return ApiVersionsRequest()
    return ApiVersionsRequest(client_software_name=name, client_software_version="1.0")


def _announced(_world: World, version: int) -> ApiVersionsResponse:
    told = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, low, high in ANNOUNCED
        ]
    )
    if version >= 3:
        told.finalized_features_epoch = 0
        told.finalized_features = [
            FinalizedFeatureKey(name="group.version", min_version_level=1, max_version_level=1)
        ]
    if version >= 4:
        told.supported_features = [
            SupportedFeatureKey(name="group.version", min_version=0, max_version=1)
        ]
    return told


def _metadata(world: World, version: int, *, name: str = "") -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name or name_of(world, version))],
        include_topic_authorized_operations=version >= 8,
        include_cluster_authorized_operations=8 <= version <= 10,
    )


def _told(world: World, version: int, topic: MetadataResponseTopic) -> MetadataResponse:
    ready = world.broker.ready
    topic.topic_authorized_operations = ALL_OF_A_TOPIC
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=ready.id, host=ready.host, port=ready.port)],
        cluster_id=world.cluster_id,
        controller_id=ready.id,
        topics=[topic],
        cluster_authorized_operations=ALL_OF_A_CLUSTER,
    )


def _metadata_told(world: World, version: int) -> MetadataResponse:
    name, broker = name_of(world, version), world.broker_id
    partition = MetadataResponsePartition(
        partition_index=0,
        leader_id=broker,
        leader_epoch=0,
        replica_nodes=[broker],
        isr_nodes=[broker],
    )
    topic = MetadataResponseTopic(name=name, topic_id=world.topic(name).id, partitions=[partition])
    return _told(world, version, topic)


def _metadata_refused(world: World, version: int) -> MetadataResponse:
    topic = MetadataResponseTopic(name="a/b", error_code=ErrorCode.INVALID_TOPIC_EXCEPTION)
    return _told(world, version, topic)


def _cluster(_world: World, version: int, *, endpoint_type: int = 1) -> DescribeClusterRequest:
    return DescribeClusterRequest(
        include_cluster_authorized_operations=True,
        endpoint_type=endpoint_type,
        include_fenced_brokers=version >= 2,
    )


def _cluster_told(world: World, _version: int) -> DescribeClusterResponse:
    ready = world.broker.ready
    return DescribeClusterResponse(
        cluster_id=world.cluster_id,
        controller_id=ready.id,
        brokers=[DescribeClusterBroker(broker_id=ready.id, host=ready.host, port=ready.port)],
        cluster_authorized_operations=ALL_OF_A_CLUSTER,
    )


def _no_controllers(_world: World, _version: int) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message=A_SENTENCE
    )


# -- topics --------------------------------------------------------------------------------------


def _create(world: World, version: int, *, name: str = "") -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name or name_of(world, version),
        num_partitions=2,
        replication_factor=1,
        configs=[CreatableTopicConfig(name="retention.ms", value="-1")],
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def _created(world: World, version: int) -> CreateTopicsResponse:
    values = {key: (topic_configs.ROWS[key].default, 5) for key in topic_configs.PUBLIC_KEYS}
    values["retention.ms"] = ("-1", 1)
    result = CreatableTopicResult(
        name=name_of(world, version),
        topic_id=AN_ID,
        error_message=None,
        num_partitions=2,
        replication_factor=1,
        configs=[
            CreatableTopicConfigs(name=key, value=value, config_source=source)
            for key, (value, source) in values.items()
        ],
    )
    return CreateTopicsResponse(topics=[result])


def _not_created(_world: World, _version: int) -> CreateTopicsResponse:
    result = CreatableTopicResult(
        name="a/b", error_code=ErrorCode.INVALID_TOPIC_EXCEPTION, error_message=A_SENTENCE
    )
    return CreateTopicsResponse(topics=[result])


def _delete(world: World, version: int, *, name: str = "") -> DeleteTopicsRequest:
    wanted = name or name_of(world, version)
    if version < 6:
        return DeleteTopicsRequest(topic_names=[wanted], timeout_ms=10_000)
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=wanted)], timeout_ms=10_000)


def _deleted(world: World, version: int) -> DeleteTopicsResponse:
    result = DeletableTopicResult(name=name_of(world, version), topic_id=AN_ID)
    return DeleteTopicsResponse(responses=[result])


def _not_deleted(_world: World, _version: int) -> DeleteTopicsResponse:
    result = DeletableTopicResult(name=NOBODY, error_code=_UNKNOWN, error_message=A_SENTENCE)
    return DeleteTopicsResponse(responses=[result])


def _widen(world: World, version: int, *, count: int = 3) -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name=name_of(world, version), count=count, assignments=None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)


def _widened(world: World, version: int) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[CreatePartitionsTopicResult(name=name_of(world, version))]
    )


def _not_widened(world: World, version: int) -> CreatePartitionsResponse:
    result = CreatePartitionsTopicResult(
        name=name_of(world, version),
        error_code=ErrorCode.INVALID_PARTITIONS,
        error_message=A_SENTENCE,
    )
    return CreatePartitionsResponse(results=[result])


def _pages(world: World, version: int, *, name: str = "") -> DescribeTopicPartitionsRequest:
    own = name_of(world, version)
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name or own)],
        response_partition_limit=10,
        cursor=None if name else Cursor(topic_name=own, partition_index=0),
    )


def _page(world: World, version: int) -> DescribeTopicPartitionsResponse:
    name, broker = name_of(world, version), world.broker_id
    partition = DescribeTopicPartitionsResponsePartition(
        partition_index=0,
        leader_id=broker,
        leader_epoch=0,
        replica_nodes=[broker],
        isr_nodes=[broker],
        eligible_leader_replicas=[],
        last_known_elr=[],
    )
    topic = DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=world.topic(name).id,
        partitions=[partition],
        topic_authorized_operations=ALL_OF_A_TOPIC,
    )
    return DescribeTopicPartitionsResponse(topics=[topic])


def _no_page(_world: World, _version: int) -> DescribeTopicPartitionsResponse:
    topic = DescribeTopicPartitionsResponseTopic(
        name=NOBODY, error_code=_UNKNOWN, topic_authorized_operations=ALL_OF_A_TOPIC
    )
    return DescribeTopicPartitionsResponse(topics=[topic])


# -- configuration -------------------------------------------------------------------------------


def _describe(world: World, version: int, *, name: str = "") -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=TOPIC,
        resource_name=name or name_of(world, version),
        configuration_keys=["retention.ms", "segment.bytes", "no.such.key"],
    )
    return DescribeConfigsRequest(
        resources=[resource], include_synonyms=True, include_documentation=version >= 3
    )


def _described(world: World, version: int) -> DescribeConfigsResponse:
    documentation = A_SENTENCE if version >= 3 else None
    configs = [
        DescribeConfigsResourceResult(
            name="retention.ms",
            value="-1",
            config_source=1,
            # The broker's keys behind it are told only where its own spelling is set.
            synonyms=[DescribeConfigsSynonym(name="retention.ms", value="-1", source=1)],
            config_type=5,
            documentation=documentation,
        ),
        DescribeConfigsResourceResult(
            name="segment.bytes",
            value="1073741824",
            config_source=5,
            synonyms=[
                DescribeConfigsSynonym(name="log.segment.bytes", value="1073741824", source=5)
            ],
            config_type=3,
            documentation=documentation,
        ),
    ]
    result = DescribeConfigsResult(
        error_message="",
        resource_type=TOPIC,
        resource_name=name_of(world, version),
        configs=configs,
    )
    return DescribeConfigsResponse(results=[result])


def _not_described(_world: World, _version: int) -> DescribeConfigsResponse:
    result = DescribeConfigsResult(
        error_code=_UNKNOWN,
        error_message=A_SENTENCE,
        resource_type=TOPIC,
        resource_name=NOBODY,
    )
    return DescribeConfigsResponse(results=[result])


def _alter_all(world: World, version: int, *, key: str = "segment.ms") -> whole.AlterConfigsRequest:
    resource = whole.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=name_of(world, version),
        configs=[whole.AlterableConfig(name=key, value="60000")],
    )
    return whole.AlterConfigsRequest(resources=[resource])


def _altered_all(
    world: World, version: int, *, error: ErrorCode = ErrorCode.NONE
) -> whole.AlterConfigsResponse:
    response = whole.AlterConfigsResourceResponse(
        error_code=error,
        error_message=A_SENTENCE if error else None,
        resource_type=TOPIC,
        resource_name=name_of(world, version),
    )
    return whole.AlterConfigsResponse(responses=[response])


def _alter_one(
    world: World, version: int, *, value: str = "60000"
) -> single.IncrementalAlterConfigsRequest:
    resource = single.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=name_of(world, version),
        configs=[single.AlterableConfig(name="segment.ms", config_operation=0, value=value)],
    )
    return single.IncrementalAlterConfigsRequest(resources=[resource])


def _altered_one(
    world: World, version: int, *, error: ErrorCode = ErrorCode.NONE
) -> single.IncrementalAlterConfigsResponse:
    response = single.AlterConfigsResourceResponse(
        error_code=error,
        error_message=A_SENTENCE if error else None,
        resource_type=TOPIC,
        resource_name=name_of(world, version),
    )
    return single.IncrementalAlterConfigsResponse(responses=[response])


def _resources(_world: World, version: int) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest(resource_types=[BROKER, LOGGER] if version >= 1 else [])


def _listed(world: World, version: int) -> ListConfigResourcesResponse:
    kinds = (LOGGER, BROKER) if version >= 1 else ()
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=str(world.broker_id), resource_type=kind) for kind in kinds
        ]
    )


_BAD_CONFIG = ErrorCode.INVALID_CONFIG

ROWS = (
    Row(key=3, versions=(0, 13), before=make_topic, request=_metadata, answer=_metadata_told),
    Row(
        key=3,
        versions=(0, 13),
        request=lambda world, version: _metadata(world, version, name="a/b"),
        answer=_metadata_refused,
        error=ErrorCode.INVALID_TOPIC_EXCEPTION,
    ),
    Row(key=18, versions=(0, 4), request=_api_versions, answer=_announced),
    # A request without fields can only be wrong by having some.
    Row(key=18, versions=(0, 2), request=_api_versions, closes=True),
    Row(
        key=18,
        versions=(3, 4),
        request=lambda world, version: _api_versions(world, version, name="no name"),
        answer=lambda _world, _version: ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST),
        error=ErrorCode.INVALID_REQUEST,
    ),
    Row(key=19, versions=(2, 7), request=_create, answer=_created),
    Row(
        key=19,
        versions=(2, 7),
        request=lambda world, version: _create(world, version, name="a/b"),
        answer=_not_created,
        error=ErrorCode.INVALID_TOPIC_EXCEPTION,
    ),
    Row(key=20, versions=(1, 6), before=make_topic, request=_delete, answer=_deleted),
    Row(
        key=20,
        versions=(1, 6),
        request=lambda world, version: _delete(world, version, name=NOBODY),
        answer=_not_deleted,
        error=_UNKNOWN,
    ),
    Row(key=32, versions=(1, 4), before=make_topic, request=_describe, answer=_described),
    Row(
        key=32,
        versions=(1, 4),
        request=lambda world, version: _describe(world, version, name=NOBODY),
        answer=_not_described,
        error=_UNKNOWN,
    ),
    Row(key=33, versions=(0, 2), before=make_topic, request=_alter_all, answer=_altered_all),
    Row(
        key=33,
        versions=(0, 2),
        request=lambda world, version: _alter_all(world, version, key="no.such.key"),
        answer=lambda world, version: _altered_all(world, version, error=_BAD_CONFIG),
        error=_BAD_CONFIG,
    ),
    Row(key=37, versions=(0, 3), before=make_topic, request=_widen, answer=_widened),
    Row(
        key=37,
        versions=(0, 3),
        request=lambda world, version: _widen(world, version, count=3),
        answer=_not_widened,
        error=ErrorCode.INVALID_PARTITIONS,
    ),
    Row(key=44, versions=(0, 1), before=make_topic, request=_alter_one, answer=_altered_one),
    Row(
        key=44,
        versions=(0, 1),
        request=lambda world, version: _alter_one(world, version, value="soon"),
        answer=lambda world, version: _altered_one(world, version, error=_BAD_CONFIG),
        error=_BAD_CONFIG,
    ),
    Row(key=60, versions=(0, 2), request=_cluster, answer=_cluster_told),
    # The oldest version has no field that could be refused.
    Row(key=60, versions=(0, 0), request=_cluster, closes=True),
    Row(
        key=60,
        versions=(1, 2),
        request=lambda world, version: _cluster(world, version, endpoint_type=2),
        answer=_no_controllers,
        error=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
    ),
    Row(key=74, versions=(0, 1), request=_resources, answer=_listed),
    # Kafka's only refusal of this request is that of a type that is none: see the test's file.
    Row(key=74, versions=(0, 1), request=_resources, closes=True),
    Row(key=75, versions=(0, 0), before=make_topic, request=_pages, answer=_page),
    Row(
        key=75,
        versions=(0, 0),
        request=lambda world, version: _pages(world, version, name=NOBODY),
        answer=_no_page,
        error=_UNKNOWN,
    ),
)
