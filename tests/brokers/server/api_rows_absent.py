"""Rows of APIs about what this release does not have: quotas, credentials, rules, moves, elections.

The answers are those of Apache Kafka 4.3 without an authorizer and with nothing set, its sentences
apart.
"""

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from brokers.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from brokers.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from brokers.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from brokers.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    UserName,
)
from brokers.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from brokers.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from tests.brokers.server.api_rows import A_SENTENCE, Row, World, make_topic, name_of

NO_AUTHORIZER = "No Authorizer is configured on the broker"
_DISABLED = ErrorCode.SECURITY_DISABLED
_NOT_NEEDED = ErrorCode.ELECTION_NOT_NEEDED
_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_TOPIC, _LITERAL, _ANY = 2, 3, 1


def _any_rule(_world: World, _version: int) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=_ANY,
        resource_name_filter=None,
        pattern_type_filter=_LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )


def _no_rules(_world: World, _version: int) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=_DISABLED, error_message=NO_AUTHORIZER)


def _new_rules(_world: World, _version: int) -> CreateAclsRequest:
    rule = AclCreation(
        resource_type=_TOPIC,
        resource_name="t",
        resource_pattern_type=_LITERAL,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    return CreateAclsRequest(creations=[rule, rule])


def _not_made(_world: World, _version: int) -> CreateAclsResponse:
    refused = AclCreationResult(error_code=_DISABLED, error_message=NO_AUTHORIZER)
    return CreateAclsResponse(results=[refused, refused])


def _rules_to_go(_world: World, _version: int) -> DeleteAclsRequest:
    found = DeleteAclsFilter(
        resource_type_filter=_TOPIC,
        resource_name_filter="t",
        pattern_type_filter=_LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )
    return DeleteAclsRequest(filters=[found])


def _not_gone(_world: World, _version: int) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(error_code=_DISABLED, error_message=NO_AUTHORIZER)
    return DeleteAclsResponse(filter_results=[refused])


def _elect(world: World, version: int, *, partition: int = 0) -> ElectLeadersRequest:
    asked = TopicPartitions(topic=name_of(world, version), partitions=[partition])
    return ElectLeadersRequest(topic_partitions=[asked])


def _not_elected(
    world: World, version: int, *, partition: int = 0, error: ErrorCode = _NOT_NEEDED
) -> ElectLeadersResponse:
    result = PartitionResult(partition_id=partition, error_code=error, error_message=A_SENTENCE)
    topic = ReplicaElectionResult(topic=name_of(world, version), partition_result=[result])
    return ElectLeadersResponse(replica_election_results=[topic])


def _moves(world: World, version: int) -> ListPartitionReassignmentsRequest:
    asked = ListPartitionReassignmentsTopics(name=name_of(world, version), partition_indexes=[0, 7])
    return ListPartitionReassignmentsRequest(topics=[asked])


def _quotas(*components: ComponentData) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(components=list(components))


_USER = ComponentData(entity_type="user", match_type=0, match="a")


def _users(*names: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])


def _no_user(_world: World, _version: int) -> DescribeUserScramCredentialsResponse:
    result = DescribeUserScramCredentialsResult(
        user="a", error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=A_SENTENCE
    )
    return DescribeUserScramCredentialsResponse(results=[result])


ROWS = (
    Row(
        key=29,
        versions=(1, 3),
        request=_any_rule,
        answer=_no_rules,
        error=_DISABLED,
        is_all_there_is=True,
    ),
    Row(key=29, versions=(1, 3), request=_any_rule, closes=True),
    Row(
        key=30,
        versions=(1, 3),
        request=_new_rules,
        answer=_not_made,
        error=_DISABLED,
        is_all_there_is=True,
    ),
    Row(key=30, versions=(1, 3), request=_new_rules, closes=True),
    Row(
        key=31,
        versions=(1, 3),
        request=_rules_to_go,
        answer=_not_gone,
        error=_DISABLED,
        is_all_there_is=True,
    ),
    Row(key=31, versions=(1, 3), request=_rules_to_go, closes=True),
    Row(
        key=43,
        versions=(0, 2),
        before=make_topic,
        request=_elect,
        answer=_not_elected,
        error=_NOT_NEEDED,
        is_all_there_is=True,
    ),
    Row(
        key=43,
        versions=(0, 2),
        request=lambda world, version: _elect(world, version, partition=5),
        answer=lambda world, version: _not_elected(world, version, partition=5, error=_UNKNOWN),
        error=_UNKNOWN,
    ),
    Row(
        key=46,
        versions=(0, 0),
        before=make_topic,
        request=_moves,
        answer=lambda _world, _version: ListPartitionReassignmentsResponse(error_message=None),
    ),
    # Kafka refuses nothing of this request, not even topics that are unknown.
    Row(key=46, versions=(0, 0), request=_moves, closes=True),
    Row(
        key=48,
        versions=(0, 1),
        request=lambda _world, _version: _quotas(_USER),
        answer=lambda _world, _version: DescribeClientQuotasResponse(entries=[]),
    ),
    Row(
        key=48,
        versions=(0, 1),
        request=lambda _world, _version: _quotas(_USER, _USER),
        answer=lambda _world, _version: DescribeClientQuotasResponse(
            error_code=ErrorCode.INVALID_REQUEST, error_message=A_SENTENCE, entries=None
        ),
        error=ErrorCode.INVALID_REQUEST,
    ),
    Row(
        key=50,
        versions=(0, 0),
        request=lambda _world, _version: DescribeUserScramCredentialsRequest(users=None),
        answer=lambda _world, _version: DescribeUserScramCredentialsResponse(),
    ),
    Row(
        key=50,
        versions=(0, 0),
        request=lambda _world, _version: _users("a"),
        answer=_no_user,
        error=ErrorCode.RESOURCE_NOT_FOUND,
    ),
)
