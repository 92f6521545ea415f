"""The consumer group name of a connector. Pure."""

from typing import Final

PREFIX: Final = "connect-"


def group_of(connector: str) -> str:
    """Return the group that holds a connector's offsets."""
    return f"{PREFIX}{connector}"


def connector_of(group: str) -> str | None:
    """Return the connector that a group of this name would belong to; None for other names."""
    return group.removeprefix(PREFIX) if group.startswith(PREFIX) else None
