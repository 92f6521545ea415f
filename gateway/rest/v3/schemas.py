"""Declares the fields of every body of version 3, of requests and answers, by public names."""

from functools import cache
from typing import Any, Final

from rest_framework.serializers import (
    BooleanField,
    CharField,
    ChoiceField,
    DictField,
    IntegerField,
    ListField,
    Serializer,
)

from gateway.access.grants import MAX_PATTERN_CHARS
from gateway.rest.v3.words import (
    ACL_OPERATIONS,
    ACL_PERMISSIONS,
    ACL_RESOURCE_TYPES,
    CONFIG_OPERATIONS,
    CONFIG_SOURCES,
    GROUP_STATES,
    GROUP_TYPES,
    PATTERN_TYPES,
)

INT32_MAX: Final = 2**31 - 1
# No broker takes more at once within the deadline of a call.
MAX_AT_ONCE: Final = 1_000
# All configs of these are read first, half a kilobyte each.
MAX_TOPICS: Final = 100
MAX_PARTITIONS: Final = 100_000
MAX_VALUE_CHARS: Final = 32_768
MAX_REPLICAS: Final = 100

Shape = Serializer[Any]


class Relationship(Shape):
    related = CharField()


class ResourceMetadata(Shape):
    resource_name = CharField(required=False, allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        # A class with methods cannot have an attribute named `self`.
        return {"self": CharField(), **super().get_fields()}


class CollectionMetadata(Shape):
    next = CharField(allow_null=True, required=False)

    def get_fields(self) -> dict[str, Any]:
        return {"self": CharField(), **super().get_fields()}


class Resource(Shape):
    """What every item has."""

    kind = CharField()
    metadata = ResourceMetadata()


@cache
def listed(shape: type[Shape]) -> type[Shape]:
    """Return the serializer of a list of items, the same for each row."""
    fields = {
        "kind": CharField(),
        "metadata": CollectionMetadata(),
        "data": shape(many=True),
        "__doc__": None,
    }
    return type(f"{shape.__name__}List", (Serializer,), fields)


# --- what is answered ------------------------------------------------------------------------


class ClusterData(Resource):
    cluster_id = CharField()
    controller = Relationship(required=False)
    acls = Relationship()
    brokers = Relationship()
    broker_configs = Relationship()
    consumer_groups = Relationship()
    topics = Relationship()
    partition_reassignments = Relationship()


class BrokerData(Resource):
    cluster_id = CharField()
    broker_id = IntegerField()
    host = CharField(required=False, allow_null=True)
    port = IntegerField(required=False, allow_null=True)
    rack = CharField(required=False, allow_null=True)
    configs = Relationship()
    partition_replicas = Relationship()


class ConfigSynonymData(Shape):
    name = CharField()
    value = CharField(required=False, allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        # Serializers have an attribute of the same name.
        return {**super().get_fields(), "source": ChoiceField(CONFIG_SOURCES)}


class ConfigData(Resource):
    cluster_id = CharField()
    name = CharField()
    value = CharField(required=False, allow_null=True)
    is_default = BooleanField()
    is_read_only = BooleanField()
    is_sensitive = BooleanField()
    synonyms = ConfigSynonymData(many=True)

    def get_fields(self) -> dict[str, Any]:
        # Serializers have an attribute of the same name.
        return {**super().get_fields(), "source": ChoiceField(CONFIG_SOURCES)}


class TopicConfigData(ConfigData):
    topic_name = CharField()


class BrokerConfigData(ConfigData):
    broker_id = IntegerField()


class ClusterConfigData(ConfigData):
    config_type = ChoiceField(["BROKER"])


class TopicData(Resource):
    cluster_id = CharField()
    topic_name = CharField()
    is_internal = BooleanField()
    replication_factor = IntegerField()
    partitions_count = IntegerField()
    partitions = Relationship()
    configs = Relationship()
    partition_reassignments = Relationship()
    authorized_operations = ListField(child=CharField(), required=False)


class PartitionData(Resource):
    cluster_id = CharField()
    topic_name = CharField()
    partition_id = IntegerField()
    leader = Relationship(required=False)
    replicas = Relationship()
    reassignment = Relationship()


class PartitionWithOffsetsData(Resource):
    cluster_id = CharField()
    topic_name = CharField()
    partition_id = IntegerField()
    earliest_offset = IntegerField()
    latest_offset = IntegerField()


class ReplicaData(Resource):
    cluster_id = CharField()
    topic_name = CharField()
    partition_id = IntegerField()
    broker_id = IntegerField()
    is_leader = BooleanField()
    is_in_sync = BooleanField()
    broker = Relationship()


class ReassignmentData(Resource):
    cluster_id = CharField()
    topic_name = CharField()
    partition_id = IntegerField()
    adding_replicas = ListField(child=IntegerField())
    removing_replicas = ListField(child=IntegerField())
    replicas = Relationship()


class ConsumerGroupData(Resource):
    cluster_id = CharField()
    consumer_group_id = CharField()
    is_simple = BooleanField()
    partition_assignor = CharField()
    state = ChoiceField(GROUP_STATES)
    type = ChoiceField(GROUP_TYPES)
    is_mixed_consumer_group = BooleanField()
    coordinator = Relationship()
    consumers = Relationship()
    lag_summary = Relationship()


class ConsumerData(Resource):
    cluster_id = CharField()
    consumer_group_id = CharField()
    consumer_id = CharField()
    instance_id = CharField(required=False, allow_null=True)
    client_id = CharField()
    assignments = Relationship()


class ConsumerAssignmentData(Resource):
    cluster_id = CharField()
    consumer_group_id = CharField()
    consumer_id = CharField()
    topic_name = CharField()
    partition_id = IntegerField()
    partition = Relationship()
    lag = Relationship()


class ConsumerLagData(Resource):
    cluster_id = CharField()
    consumer_group_id = CharField()
    topic_name = CharField()
    partition_id = IntegerField()
    current_offset = IntegerField()
    log_end_offset = IntegerField()
    lag = IntegerField()
    consumer_id = CharField()
    instance_id = CharField(required=False, allow_null=True)
    client_id = CharField()


class ConsumerGroupLagSummaryData(Resource):
    cluster_id = CharField()
    consumer_group_id = CharField()
    max_lag_consumer_id = CharField()
    max_lag_instance_id = CharField(required=False, allow_null=True)
    max_lag_client_id = CharField()
    max_lag_topic_name = CharField()
    max_lag_partition_id = IntegerField()
    max_lag = IntegerField()
    total_lag = IntegerField()
    max_lag_consumer = Relationship()
    max_lag_partition = Relationship()


class AclData(Resource):
    cluster_id = CharField()
    resource_type = ChoiceField(ACL_RESOURCE_TYPES)
    resource_name = CharField()
    pattern_type = ChoiceField(PATTERN_TYPES)
    principal = CharField()
    host = CharField()
    operation = ChoiceField(ACL_OPERATIONS)
    permission = ChoiceField(ACL_PERMISSIONS)


class DeletedAcls(Shape):
    def get_fields(self) -> dict[str, Any]:
        return {"data": AclData(many=True)}


class TopicConfigFailure(Shape):
    topic_name = CharField()
    error_code = IntegerField()
    message = CharField()


class TopicConfigFailures(Shape):
    failures = TopicConfigFailure(many=True)


# --- what is asked -----------------------------------------------------------------------------


class NamedValue(Shape):
    name = CharField(max_length=MAX_PATTERN_CHARS)
    value = CharField(
        required=False,
        allow_null=True,
        allow_blank=True,
        trim_whitespace=False,
        max_length=MAX_VALUE_CHARS,
    )


class CreateTopicRequestData(Shape):
    # Brokers describe an invalid name better.
    topic_name = CharField(max_length=MAX_VALUE_CHARS, trim_whitespace=False)
    partitions_count = IntegerField(required=False, min_value=1, max_value=MAX_PARTITIONS)
    replication_factor = IntegerField(required=False, min_value=1, max_value=MAX_REPLICAS)
    replicas_assignments = DictField(
        required=False,
        child=ListField(
            child=IntegerField(min_value=0, max_value=INT32_MAX),
            allow_empty=False,
            max_length=MAX_REPLICAS,
        ),
    )
    configs = ListField(child=NamedValue(), required=False, max_length=MAX_AT_ONCE)
    validate_only = BooleanField(required=False, default=False)


class UpdatePartitionCountRequestData(Shape):
    partitions_count = IntegerField(min_value=1, max_value=MAX_PARTITIONS)


class UpdateConfigRequestData(Shape):
    value = CharField(
        required=False,
        allow_null=True,
        allow_blank=True,
        trim_whitespace=False,
        max_length=MAX_VALUE_CHARS,
    )


class AlteredConfig(NamedValue):
    operation = ChoiceField(CONFIG_OPERATIONS, required=False, allow_null=True)


class AlterConfigBatchRequestData(Shape):
    validate_only = BooleanField(required=False, default=False)

    def get_fields(self) -> dict[str, Any]:
        # Serializers have an attribute of the same name.
        items = ListField(child=AlteredConfig(), allow_empty=False, max_length=MAX_AT_ONCE)
        return {"data": items, **super().get_fields()}


class TopicConfigEdits(Shape):
    topic_name = CharField(max_length=MAX_PATTERN_CHARS, trim_whitespace=False)
    configs = ListField(child=AlteredConfig(), allow_empty=False, max_length=MAX_AT_ONCE)


class AlterTopicsConfigBatchRequestData(Shape):
    validate_only = BooleanField(required=False, default=False)

    def get_fields(self) -> dict[str, Any]:
        # Serializers have an attribute of the same name.
        items = ListField(child=TopicConfigEdits(), allow_empty=False, max_length=MAX_TOPICS)
        return {"data": items, **super().get_fields()}


class CreateAclRequestData(Shape):
    resource_type = ChoiceField(ACL_RESOURCE_TYPES)
    resource_name = CharField(max_length=MAX_PATTERN_CHARS, trim_whitespace=False)
    pattern_type = ChoiceField(PATTERN_TYPES)
    principal = CharField(max_length=MAX_PATTERN_CHARS, trim_whitespace=False)
    host = CharField(max_length=MAX_PATTERN_CHARS, trim_whitespace=False)
    operation = ChoiceField(ACL_OPERATIONS)
    permission = ChoiceField(ACL_PERMISSIONS)


class CreateAclRequestDataList(Shape):
    def get_fields(self) -> dict[str, Any]:
        rule = CreateAclRequestData()
        return {"data": ListField(child=rule, allow_empty=False, max_length=MAX_AT_ONCE)}


class AclFilter(Shape):
    """The query of a list of rules."""

    resource_type = ChoiceField(ACL_RESOURCE_TYPES, default="ANY")
    resource_name = CharField(required=False, max_length=MAX_PATTERN_CHARS)
    pattern_type = ChoiceField(PATTERN_TYPES, default="ANY")
    principal = CharField(required=False, max_length=MAX_PATTERN_CHARS)
    host = CharField(required=False, max_length=MAX_PATTERN_CHARS)
    operation = ChoiceField(ACL_OPERATIONS, default="ANY")
    permission = ChoiceField(ACL_PERMISSIONS, default="ANY")


class AclDeletion(AclFilter):
    """The query of a deletion: an omitted field must not match everything."""

    resource_type = ChoiceField(ACL_RESOURCE_TYPES)
    pattern_type = ChoiceField(PATTERN_TYPES)
    operation = ChoiceField(ACL_OPERATIONS)
    permission = ChoiceField(ACL_PERMISSIONS)
