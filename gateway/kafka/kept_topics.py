"""Names the topics in which a cluster and its tools keep their state, and what is lost with them.

Kafka's protocol deletes them like any other topic; the tools of Samsa refuse to, unless forced.
"""

import json
from pathlib import Path
from typing import Final

# `up` writes a file of a few hundred bytes; larger ones are not its.
MAX_SETTINGS_BYTES: Final = 64 * 1024
# The prefix of topics that Kafka and its tools use internally.
INTERNAL_PREFIX: Final = "__"
# What is lost with a topic: a sentence after "deleting it loses".
LOSSES: Final = {
    "__consumer_offsets": (
        "all consumer groups and their committed offsets: every group starts again where its"
        " auto.offset.reset says, and reads records twice or not at all"
    ),
    "__transaction_state": (
        "the state of all transactions: those in progress are neither committed nor aborted"
    ),
    "__share_group_state": (
        "the positions of all share groups: they start again where share.auto.offset.reset says"
    ),
}
OF_TOOLS: Final = "the state that a tool of the cluster keeps in it, as its prefix __ says"
OF_METRICS: Final = (
    "the metrics that the collector has published: records stay away until it creates the topic"
    " again, and earlier ones are gone"
)


def loss_of(topic: str, *, metrics_topic: str = "") -> str:
    """Return what is lost with a topic that keeps state of the cluster; empty for other topics."""
    if topic in LOSSES:
        return LOSSES[topic]
    if topic.startswith(INTERNAL_PREFIX):
        return OF_TOOLS
    return OF_METRICS if topic and topic == metrics_topic else ""


def metrics_topic_of(settings_file: Path) -> str:
    """Return the topic in which the collector of a home publishes samples; empty if it does not."""
    try:
        with settings_file.open("rb") as file:
            settings = json.loads(file.read(MAX_SETTINGS_BYTES))
    except (OSError, ValueError):
        return ""
    found = settings.get("metrics_topic") if isinstance(settings, dict) else None
    return found if isinstance(found, str) else ""
