"""Says in one sentence what a step of a plan does, in the words of topics, brokers and configs."""

from collections.abc import Iterable, Sequence
from typing import Final

from brokers import quantities
from brokers.cluster.effects import masked
from brokers.cluster.image import ResourceType
from brokers.cluster.plans import Step
from brokers.cluster.proposals import (
    AlterConfigs,
    ConfigEdit,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
)

# Configs that a sentence names; the table below it has all of them.
NAMED: Final = 5
# A value is a list of up to thousands of characters.
VALUE_CHARS: Final = 80


def sentence_of(step: Step) -> str:
    """Return the effect of a step; of one that is refused, what was asked."""
    match step.asked, step.call:
        case CreateTopic(name=name, configs=configs), CreateTopic(assignments=assignments):
            set_to = [_value(key, value or "") for key, value in configs]
            return f"Create topic {name}{_shape(assignments)}{_with(set_to)}."
        case CreatePartitions(name=name, count=count), CreatePartitions(assignments=assignments):
            added = "" if assignments is None else f" {_counted(len(assignments), 'partition')}"
            return f"Add{added or ' partitions'} to topic {name}, which then has {count:,}."
        case DeleteTopic(name=name), _:
            named = step.effects[0].name if step.effects else name
            return f"Delete topic {named}, with all of its records."
        case AlterConfigs() as altered, _:
            of = f"topic {altered.name}" if altered.resource_type is ResourceType.TOPIC else ""
            of = of or (f"broker {altered.name}" if altered.name else "all brokers")
            edits = [_edited(altered.resource_type, edit) for edit in altered.edits]
            return f"{_upper(_joined(edits))}, for {of}."
        case _:
            raise AssertionError(f"no page plans {step.asked}")


def _shape(assignments: Sequence[Sequence[int]] | None) -> str:
    if not assignments:
        return ""
    copies = len(assignments[0])
    on = "on one broker" if copies == 1 else f"on {copies} brokers"
    on += " each" if len(assignments) > 1 else ""
    return f" with {_counted(len(assignments), 'partition')}, {on}"


def _with(values: Sequence[str]) -> str:
    return f"; set {_joined(values)}" if values else ""


def _edited(kind: ResourceType, edit: ConfigEdit) -> str:
    # As the audit writes it: an unknown key may be a secret of another program.
    value = masked(kind, {edit.key: edit.value or ""})[edit.key]
    match edit.operation:
        case ConfigOperation.DELETE:
            return f"unset {edit.key}"
        case ConfigOperation.APPEND:
            return f"add {_cut(value)} to {edit.key}"
        case ConfigOperation.SUBTRACT:
            return f"take {_cut(value)} out of {edit.key}"
        case _:
            return f"set {_value(edit.key, value)}"


def _value(key: str, value: str) -> str:
    words = quantities.in_words(key, value)
    shown = _cut(value) or "an empty value"
    return f"{key} to {shown} ({words})" if words else f"{key} to {shown}"


def _joined(parts: Iterable[str]) -> str:
    listed = list(parts)
    more = len(listed) - NAMED
    named = [*listed[:NAMED], *([f"{more} more"] if more > 0 else [])]
    return " and ".join(filter(None, (", ".join(named[:-1]), named[-1] if named else "")))


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_CHARS else f"{text[: VALUE_CHARS - 1]}…"


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
