"""Reads and changes configs of all brokers at once, which Kafka stores under an empty broker name.

librdkafka accepts no empty name, so the requests are sent without it.
"""

from collections.abc import Sequence
from typing import Final

from brokers.protocol.messages import describe_configs as describing
from brokers.protocol.messages import incremental_alter_configs as altering
from gateway.kafka.connection import Connection
from gateway.kafka.errors import broker_failure
from gateway.kafka.requests import ask
from gateway.kafka.values import Config, ConfigEdit, ConfigSynonym, EditKind

BROKER: Final = 4
ALL_BROKERS: Final = ""
OPERATIONS: Final = {
    EditKind.SET: 0,
    EditKind.DELETE: 1,
    EditKind.APPEND: 2,
    EditKind.SUBTRACT: 3,
}
VALUE: Final = "the configs of all brokers"
# Kafka's word for where they come from.
SOURCE: Final = "DYNAMIC_DEFAULT_BROKER_CONFIG"


def describe(connection: Connection) -> list[Config]:
    """Return what is set for all brokers, by key."""
    resource = describing.DescribeConfigsResource(
        resource_type=BROKER, resource_name=ALL_BROKERS, configuration_keys=None
    )
    request = describing.DescribeConfigsRequest(resources=[resource])
    answer = ask(connection, request, describing.DescribeConfigsResponse, VALUE, version=1)
    found = []
    for result in answer.results:
        if result.error_code:
            raise broker_failure(result.error_code, VALUE, result.error_message)
        found += [_config(each) for each in result.configs]
    return sorted(found, key=lambda config: config.key)


def _config(found: describing.DescribeConfigsResourceResult) -> Config:
    return Config(
        key=found.name,
        value=found.value,
        source=SOURCE,
        is_default=False,
        is_read_only=found.read_only,
        is_sensitive=found.is_sensitive,
        synonyms=(ConfigSynonym(key=found.name, value=found.value, source=SOURCE),),
    )


def alter(connection: Connection, edits: Sequence[ConfigEdit], *, is_dry_run: bool) -> None:
    """Change some configs and keep the others: all of them, or none."""
    configs = [
        altering.AlterableConfig(
            name=edit.key,
            config_operation=OPERATIONS[edit.kind],
            value=None if edit.kind is EditKind.DELETE else edit.value,
        )
        for edit in edits
    ]
    resource = altering.AlterConfigsResource(
        resource_type=BROKER, resource_name=ALL_BROKERS, configs=configs
    )
    request = altering.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=is_dry_run
    )
    answer = ask(connection, request, altering.IncrementalAlterConfigsResponse, VALUE, version=0)
    for result in answer.responses:
        if result.error_code:
            raise broker_failure(result.error_code, VALUE, result.error_message)
