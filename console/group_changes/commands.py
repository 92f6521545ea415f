"""Writes a plan of a group's change as a command: of `./samsa`, and of Kafka's own script. Pure."""

import shlex
from typing import Final

from brokers.controlplane.services import GroupChangeKind
from console.group_changes.plans import GroupPlan

# The file that a page offers beside a command that no other option can express.
FILE_NAME: Final = "plan.csv"
# Nobody would paste a longer command; Linux allows 128 KiB for one argument.
MAX_CHARS: Final = 20_000


def samsa_command(plan: GroupPlan) -> str | None:
    """Return `./samsa groups ...`; None if it would be too long."""
    match plan.kind:
        case GroupChangeKind.RESET_OFFSETS:
            verb, options = "reset", [*plan.targets, *plan.options, "--execute"]
        case GroupChangeKind.DELETE_OFFSETS:
            verb, options = "delete-offsets", ["--topic", plan.topic]
        case GroupChangeKind.DELETE_GROUP:
            verb, options = "delete", []
    # A name that looks like an option has to follow `--`.
    is_odd = plan.group.startswith("-")
    words = [verb, *options, "--", plan.group] if is_odd else [verb, plan.group, *options]
    return _bounded(shlex.join(["./samsa", "groups", *words]))


def kafka_command(plan: GroupPlan, *, bootstrap: str) -> str | None:
    """Return the same for `kafka-consumer-groups.sh`."""
    match plan.kind:
        case GroupChangeKind.RESET_OFFSETS:
            words = ["--reset-offsets", *plan.targets, *plan.options, "--execute"]
        case GroupChangeKind.DELETE_OFFSETS:
            words = ["--delete-offsets", "--topic", plan.topic]
        case GroupChangeKind.DELETE_GROUP:
            words = ["--delete"]
    is_odd = plan.group.startswith("-")
    named = [f"--group={plan.group}"] if is_odd else ["--group", plan.group]
    script = ["kafka-consumer-groups.sh", "--bootstrap-server", bootstrap]
    return _bounded(shlex.join([*script, *named, *words]))


def _bounded(command: str) -> str | None:
    return command if len(command) <= MAX_CHARS else None
