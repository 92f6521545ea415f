"""What the consumer group of a connector is called. Pure."""

from typing import Final

PREFIX: Final = "connect-"


def group_of(connector: str) -> str:
    """Return the group that says how far a connector has read its topics."""
    return f"{PREFIX}{connector}"
