"""Warns of topics whose acknowledged records one power failure may lose."""

from collections.abc import Iterable
from typing import Final

from cli.output import say
from gateway.kafka.values import Config, Topic

KEY: Final = "samsa.durability"
REPLICATED: Final = "replicated"


def is_lone_copy(durability: str | None, replicas: int) -> bool:
    """Tell whether records are acknowledged when the memory of one machine has them."""
    return durability == REPLICATED and replicas == 1


def warn_of_lone_copy(topic: Topic, configs: Iterable[Config]) -> None:
    """Write a warning beside the output of a command that shows or changes a topic."""
    durability = next((config.value for config in configs if config.key == KEY), None)
    if is_lone_copy(durability, topic.replication_factor):
        say_warning(topic.name)


def say_warning(name: str) -> None:
    say(
        f"warning: {name} has one replica and {KEY}={REPLICATED}: records are acknowledged before "
        f"they are on a disk, and a power failure loses them. Delete {KEY}, or create the topic "
        "with more replicas.",
        to_stderr=True,
    )
