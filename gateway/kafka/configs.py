"""Reads and changes configs of named topics and brokers, many in one request."""

from collections.abc import Mapping, Sequence
from typing import Final

from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from gateway.kafka.admin_calls import AdminCalls
from gateway.kafka.connection import Deadline
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Config, ConfigEdit, ConfigSynonym, EditKind, ResourceKind

RESOURCES: Final = {
    ResourceKind.TOPIC: ResourceType.TOPIC,
    ResourceKind.BROKER: ResourceType.BROKER,
}
EDITS: Final = {
    EditKind.SET: AlterConfigOpType.SET,
    EditKind.DELETE: AlterConfigOpType.DELETE,
    EditKind.APPEND: AlterConfigOpType.APPEND,
    EditKind.SUBTRACT: AlterConfigOpType.SUBTRACT,
}


def describe(
    calls: AdminCalls, kind: ResourceKind, names: Sequence[str]
) -> dict[str, list[Config]]:
    """Return every config of resources, by name and key; raise for the first missing one."""
    if not names:
        return {}
    asked = [ConfigResource(RESOURCES[kind], name) for name in names]

    def ask(deadline: Deadline) -> list[dict[str, ConfigEntry]]:
        futures = calls.send(
            lambda: calls.client.describe_configs(asked, request_timeout=deadline.left())
        )
        return [
            calls.wait(futures[resource], deadline, f"{kind.value} {resource.name}")
            for resource in asked
        ]

    found = [[_config(entries[key]) for key in sorted(entries)] for entries in calls.read(ask)]
    return dict(zip(names, found, strict=True))


def alter(
    calls: AdminCalls,
    kind: ResourceKind,
    edits: Mapping[str, Sequence[ConfigEdit]],
    *,
    is_dry_run: bool,
) -> dict[str, KafkaFailure]:
    """Change some configs of resources and keep the others; return the refused resources."""
    asked = calls.send(
        lambda: [
            ConfigResource(
                RESOURCES[kind],
                name,
                incremental_configs=[
                    ConfigEntry(edit.key, edit.value, incremental_operation=EDITS[edit.kind])
                    for edit in wanted
                ],
            )
            for name, wanted in edits.items()
        ]
    )
    deadline = calls.connection.deadline()
    futures = calls.send(
        lambda: calls.client.incremental_alter_configs(
            asked, request_timeout=deadline.left(), validate_only=is_dry_run
        )
    )
    refused: dict[str, KafkaFailure] = {}
    for resource in asked:
        try:
            calls.wait(futures[resource], deadline, f"{kind.value} {resource.name}")
        except KafkaFailure as failed:
            refused[resource.name] = failed
    return refused


def _config(entry: ConfigEntry) -> Config:
    return Config(
        key=entry.name,
        value=entry.value,
        source=ConfigSource(entry.source).name,
        is_default=entry.is_default,
        is_read_only=entry.is_read_only,
        is_sensitive=entry.is_sensitive,
        synonyms=tuple(
            ConfigSynonym(key=other.name, value=other.value, source=ConfigSource(other.source).name)
            for other in entry.synonyms.values()
        ),
    )
