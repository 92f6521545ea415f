"""Converts values to the JSON of Kafka Connect 4.3: its names, in its order."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from connectors.runtime.condition import Losing, Retrying
from connectors.sdk.checks import to_text
from connectors.sdk.configs import REQUIRED, Key, Value
from connectors.sdk.records import TopicPartition
from connectors.selectors import ConnectorInfo, Status, TaskStatus
from connectors.validation import Entry, Validation, undefined

# The version of the served interface.
VERSION: Final = "4.3.0"
COMMIT: Final = "samsa"
NO_VALUE: Final = Value(name="", value=None)


def info(found: ConnectorInfo) -> dict[str, Any]:
    return {
        "name": found.name,
        "config": dict(found.config),
        "tasks": [task_id(found.name, number) for number in found.tasks],
        "type": found.kind,
    }


def task_id(connector: str, number: int) -> dict[str, Any]:
    return {"connector": connector, "task": number}


def status(found: Status) -> dict[str, Any]:
    return {
        "name": found.name,
        "connector": _state(found.state, found.worker, found.version, found.trace),
        "tasks": [task_status(task, found.version) for task in found.tasks],
        "type": found.kind,
    }


def task_status(found: TaskStatus, version: str) -> dict[str, Any]:
    """Return Kafka Connect's members, and ours where the task does not do its work."""
    return {
        "id": found.number,
        **_state(found.state, found.worker, version, found.trace),
        **({"retrying": _retrying(found.retrying)} if found.retrying else {}),
        **({"losing": _losing(found.losing)} if found.losing else {}),
    }


def _retrying(found: Retrying) -> dict[str, Any]:
    return {
        "since": _moment(found.since_ms),
        "attempts": found.tries,
        "reason": found.reason,
        "next_attempt": _moment(found.next_ms),
    }


def _losing(found: Losing) -> dict[str, Any]:
    return {
        "since": _moment(found.since_ms),
        "last": _moment(found.last_ms),
        "read": found.read,
        "lost": found.lost,
        "lost_since": found.lost_since,
        "dead_letters_since": found.dead_since,
        "causes": [
            {"reason": cause.text, "advice": cause.advice, "records": cause.count}
            for cause in found.causes
        ],
    }


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")


def tasks(found: Status) -> list[dict[str, Any]]:
    return [
        {"id": task_id(found.name, task.number), "config": dict(task.config)}
        for task in found.tasks
    ]


def source_offsets(
    found: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> dict[str, Any]:
    return {"offsets": [{"partition": place, "offset": offset} for place, offset in found]}


def sink_offsets(found: Mapping[TopicPartition, int]) -> dict[str, Any]:
    return {
        "offsets": [
            {
                "partition": {"kafka_topic": place.topic, "kafka_partition": place.partition},
                "offset": {"kafka_offset": offset},
            }
            for place, offset in sorted(found.items())
        ]
    }


def validation(name: str, found: Validation) -> dict[str, Any]:
    """Return the answer to `validate`.

    Kafka Connect has no warnings, so values without one have the members of its answer only.
    """
    known = {entry.key.name for entry in found.entries}
    more = [undefined(name) for name in found.warnings if name not in known]
    return {
        "name": name,
        "error_count": len(found.errors),
        "groups": list(found.groups),
        "configs": [
            {
                "definition": definition(entry),
                "value": {
                    "name": entry.key.name,
                    "value": entry.value.value,
                    "recommended_values": [str(one) for one in entry.value.recommended],
                    "errors": list(entry.value.errors),
                    "visible": entry.value.is_visible,
                    **_warnings(found.warnings.get(entry.key.name)),
                },
            }
            for entry in (*found.entries, *more)
        ],
    }


def _warnings(text: str | None) -> dict[str, list[str]]:
    return {"warnings": [text]} if text else {}


def definition(entry: Entry) -> dict[str, Any]:
    key = entry.key
    return {
        "name": key.name,
        "type": key.kind.value,
        "required": key.is_required,
        "default_value": None if key.default is REQUIRED else to_text(key, key.default),
        "importance": key.importance.value,
        "documentation": key.doc,
        "group": entry.group,
        "order_in_group": entry.order,
        "width": key.width.value,
        "display_name": key.display_name or key.name,
        "dependents": list(key.dependents),
    }


def bare_definition(key: Key) -> dict[str, Any]:
    """Return the definition of a key, without its place in a form."""
    return definition(Entry(key=key, value=NO_VALUE, group=key.group, order=-1))


def _state(state: str, worker: str, version: str, trace: str) -> dict[str, Any]:
    found = {"state": state, "worker_id": worker, "version": version}
    return {**found, "trace": trace} if trace else found
