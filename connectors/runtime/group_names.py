"""The consumer group name of a connector. Pure."""

from typing import Final

PREFIX: Final = "connect-"


def group_of(connector: str) -> str:
    """Return the group that holds a connector's offsets."""
    return f"{PREFIX}{connector}"
