"""Reads and changes the ACLs of a cluster.

Kinds and operations are Kafka's words. A cluster without security answers SECURITY_DISABLED.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, cast

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from brokers.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from gateway.kafka.admin_calls import AdminCalls
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import broker_failure, failure
from gateway.kafka.requests import ask

# Kafka's resource types as far as the client library supports them.
RESOURCES: Final = {
    "ANY": ResourceType.ANY,
    "TOPIC": ResourceType.TOPIC,
    "GROUP": ResourceType.GROUP,
    "CLUSTER": ResourceType.BROKER,
    "TRANSACTIONAL_ID": ResourceType.TRANSACTIONAL_ID,
}
# The protocol's numbers: the shortest filter is of topics without a name.
TOPICS: Final = 2
ANYTHING: Final = 1
RESOURCE_NAMES: Final[dict[Enum, str]] = {kind: name for name, kind in RESOURCES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class AclRule:
    """A rule, or a filter of rules, in which None matches everything."""

    resource_type: str
    resource_name: str | None
    pattern_type: str
    principal: str | None
    host: str | None
    operation: str
    permission: str


class Acls:
    """An admin connection for ACLs. Not thread-safe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._calls = AdminCalls(connection)

    def matching(self, wanted: AclRule) -> list[AclRule]:
        """Return the rules that match a filter."""
        asked = self._calls.send(lambda: AclBindingFilter(*_arguments(wanted)), "the filter")
        self._require_rules()

        def found(deadline: Deadline) -> list[AclBinding]:
            future = self._calls.send(
                lambda: self._calls.client.describe_acls(asked, request_timeout=deadline.left())
            )
            # The stubs declare a future of Any.
            answer: list[AclBinding] = self._calls.wait(future, deadline, "access rules")
            return answer

        return [_rule(rule) for rule in self._calls.read(found)]

    def _require_rules(self) -> None:
        """Raise if the brokers store no rules; the library would take that for an empty list."""
        request = DescribeAclsRequest(
            resource_type_filter=TOPICS,
            resource_name_filter="",
            principal_filter=None,
            host_filter=None,
            operation=ANYTHING,
            permission_type=ANYTHING,
        )
        answer = ask(self._connection, request, DescribeAclsResponse, "access rules", version=1)
        if answer.error_code:
            raise broker_failure(answer.error_code, "access rules", answer.error_message)

    def create(self, rules: Sequence[AclRule]) -> None:
        """Create rules; raise the first failure."""
        asked = self._calls.send(
            lambda: [AclBinding(*_arguments(rule)) for rule in dict.fromkeys(rules)], "the rule"
        )
        deadline = self._connection.deadline()
        futures = self._calls.send(
            lambda: self._calls.client.create_acls(asked, request_timeout=deadline.left())
        )
        for future in futures.values():
            self._calls.wait(future, deadline, "access rules")

    def delete(self, wanted: AclRule) -> list[AclRule]:
        """Delete the rules that match a filter, and return them."""
        asked = self._calls.send(lambda: AclBindingFilter(*_arguments(wanted)), "the filter")
        deadline = self._connection.deadline()
        futures = self._calls.send(
            lambda: self._calls.client.delete_acls([asked], request_timeout=deadline.left())
        )
        return [
            _rule(found)
            for future in futures.values()
            for found in self._calls.wait(future, deadline, "access rules")
        ]


def _arguments(rule: AclRule) -> tuple[Any, ...]:
    """Return a rule as arguments of the library's classes. Raises for an unsupported type."""
    if rule.resource_type not in RESOURCES:
        raise failure(
            "INVALID_REQUEST",
            f"resource type {rule.resource_type}",
            f"rules can be asked for and made on {', '.join(RESOURCES)}",
        )
    return (
        RESOURCES[rule.resource_type],
        rule.resource_name,
        ResourcePatternType[rule.pattern_type],
        rule.principal,
        rule.host,
        AclOperation[rule.operation],
        AclPermissionType[rule.permission],
    )


def _rule(found: AclBinding) -> AclRule:
    # The stubs declare enumerations, but the constructor takes their names, too.
    kind, pattern, operation, permission = (
        cast("Enum", word)
        for word in (
            found.restype,
            found.resource_pattern_type,
            found.operation,
            found.permission_type,
        )
    )
    return AclRule(
        resource_type=RESOURCE_NAMES.get(kind, "UNKNOWN"),
        resource_name=found.name,
        pattern_type=pattern.name,
        principal=found.principal,
        host=found.host,
        operation=operation.name,
        permission=permission.name,
    )
