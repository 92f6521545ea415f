"""Writes steps of metadata plans as shell commands: for `./samsa`, and for Kafka's own scripts.

Pure. `./samsa` chooses brokers again; Kafka's script gets those that the plan has chosen.
"""

import shlex
from collections.abc import Iterable
from typing import Final

from brokers.cluster.effects import HIDDEN
from brokers.cluster.image import ResourceType
from brokers.cluster.plans import Step
from brokers.cluster.proposals import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic

_ENTITY: Final = {ResourceType.TOPIC: "topics", ResourceType.BROKER: "brokers"}
_OURS: Final = {ResourceType.TOPIC: "topic", ResourceType.BROKER: "broker"}
# `./samsa` deletes topics with this prefix only if `--force` is given.
INTERNAL_PREFIX: Final = "__"
# Linux limits one argument to 128 KiB.
MAX_ASSIGNMENT: Final = 100_000


def of_step(step: Step, *, bootstrap: str) -> tuple[str, ...]:
    """Return the commands for a step; none if it needs none."""
    return tuple(filter(None, (_ours_of_step(step), _kafkas_of_step(step, bootstrap))))


def joined(command: str, name: str, options: Iterable[str]) -> str:
    """Return a command for a name, even if the name looks like an option."""
    written = shlex.join(options)
    if not name.startswith("-"):
        return " ".join([command, shlex.quote(name), written]).strip()
    if command.startswith("./samsa"):
        return " ".join(filter(None, [command, written, "--", shlex.quote(name)]))
    return f"{command}={shlex.quote(name)} {written}".strip()


def _ours_of_step(step: Step) -> str | None:
    match step.asked:
        case CreateTopic() as create:
            return joined("./samsa topics create", create.name, _created(create, step.call))
        case CreatePartitions() as grown:
            return joined("./samsa topics alter", grown.name, ["--partitions", str(grown.count)])
        case DeleteTopic():
            name = _name(step)
            return joined(
                "./samsa topics delete", name, ["--force"] * name.startswith(INTERNAL_PREFIX)
            )
        case AlterConfigs() as alter if alter.name:
            options = [
                *(part for pair in _set(step) for part in ("--set", "=".join(pair))),
                *(part for key in _unset(step) for part in ("--delete", key)),
            ]
            command = f"./samsa configs alter {_OURS[alter.resource_type]}"
            return joined(command, alter.name, options) if options else None
        case _:
            return None


def _kafkas_of_step(step: Step, bootstrap: str) -> str | None:
    topics = f"kafka-topics.sh --bootstrap-server {shlex.quote(bootstrap)}"
    match step.asked:
        case CreateTopic() as create:
            options = [part for pair in create.configs for part in ("--config", _pair(pair))]
            assigned = _assigned(step.call)
            return joined(f"{topics} --create --topic", create.name, [*assigned, *options])
        case CreatePartitions() as grown:
            options = ["--partitions", str(grown.count)]
            return joined(f"{topics} --alter --topic", grown.name, options)
        case DeleteTopic():
            return joined(f"{topics} --delete --topic", _name(step), [])
        case AlterConfigs() as alter:
            return _configs_command(step, alter, bootstrap)
        case _:
            return None


def _configs_command(step: Step, alter: AlterConfigs, bootstrap: str) -> str | None:
    options: list[str] = []
    if added := _set(step):
        # Kafka's tools take a value with a comma in brackets.
        options += ["--add-config", ",".join(_pair((k, f"[{v}]")) for k, v in added)]
    if gone := _unset(step):
        options += ["--delete-config", ",".join(gone)]
    if not options:
        return None
    command = f"kafka-configs.sh --bootstrap-server {shlex.quote(bootstrap)} --alter"
    command += f" --entity-type {_ENTITY[alter.resource_type]}"
    if not alter.name:
        return f"{command} --entity-default {shlex.join(options)}"
    return joined(f"{command} --entity-name", alter.name, options)


def _created(asked: CreateTopic, call: object) -> list[str]:
    assert isinstance(call, CreateTopic)
    options: list[str] = []
    if call.assignments is not None:
        options += ["--partitions", str(len(call.assignments))]
        options += ["--replication-factor", str(len(call.assignments[0]))]
    options += [part for pair in asked.configs for part in ("--config", _pair(pair))]
    return options


def _assigned(call: object) -> list[str]:
    assert isinstance(call, CreateTopic)
    if call.assignments is None:
        return ["--partitions", str(call.partitions)]
    text = ",".join(":".join(map(str, replicas)) for replicas in call.assignments)
    if len(text) <= MAX_ASSIGNMENT:
        return ["--replica-assignment", text]
    factor = str(len(call.assignments[0]))
    return ["--partitions", str(len(call.assignments)), "--replication-factor", factor]


def _pair(pair: tuple[str, str | None]) -> str:
    return f"{pair[0]}={pair[1] or ''}"


def _name(step: Step) -> str:
    if step.effects:
        return step.effects[0].name
    assert isinstance(step.asked, DeleteTopic)
    return step.asked.name or ""


def _set(step: Step) -> list[tuple[str, str]]:
    return [
        (key, value)
        for effect in step.effects
        for key, value in effect.after.items()
        if value != HIDDEN
    ]


def _unset(step: Step) -> list[str]:
    return [key for effect in step.effects for key in effect.before if key not in effect.after]
