"""Stores the first offsets of streams in a compacted topic of the cluster, by stream name.

Spark's checkpoint has the end of each micro-batch, but not the beginning of the first one. A stream
whose first batch fails asks for its beginning again, and "latest" would then be a later offset: the
records in between would never be read. So the beginning is stored before it is used.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from spark_integration.datasource import encode
from spark_integration.datasource.encode import NO_HEADERS, Records
from spark_integration.datasource.errors import SamsaError
from spark_integration.datasource.fetching import Range, Reading, read_range
from spark_integration.datasource.offsets import from_json, to_json
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.errors import UNKNOWN_TOPIC, BrokerError, check
from spark_integration.datasource.wire.messages import EARLIEST, LATEST, TopicPartition

TOPIC: Final = "__samsa_spark_beginnings"
CONFIGS: Final = {"cleanup.policy": "compact"}
WHERE: Final = TopicPartition(TOPIC, 0)
FORMAT: Final = 1
# The file that Spark writes into a checkpoint at the first start, before it asks for offsets.
METADATA: Final = "metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The first offsets of a stream, and the ids of its topics."""

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, bytes]


def stream_name(*, query_id: str, checkpoint: str) -> str:
    """Return the name of a stream across restarts; empty without one.

    A checkpoint on this machine includes its id, so that a recreated checkpoint at the same path is
    another stream.
    """
    if query_id or not checkpoint:
        return query_id
    folder = local_folder(checkpoint)
    if folder is None:
        return f"{checkpoint}#"
    return f"{folder}#{checkpoint_id(folder)}"


def local_folder(checkpoint: str) -> Path | None:
    """Return the normalized path of a checkpoint; None if it is not on this machine."""
    parts = urlsplit(checkpoint)
    if parts.scheme == "file":
        return Path(unquote(parts.path)).absolute()
    return None if parts.scheme else Path(checkpoint).absolute()


def checkpoint_id(folder: Path) -> str:
    try:
        told = json.loads((folder / METADATA).read_text(encoding="utf-8"))
        return str(told["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def read_beginning(cluster: Cluster, name: str) -> Beginning | None:
    """Return the stored first offsets of a stream, if any."""
    topic = cluster.metadata([TOPIC]).topics.get(TOPIC)
    if topic is None or topic.error_code in UNKNOWN_TOPIC:
        return None
    check(topic.error_code, f"topic {TOPIC}")
    first = cluster.list_offsets({WHERE: EARLIEST})[WHERE]
    last = cluster.list_offsets({WHERE: LATEST})[WHERE]
    wanted = Range(topic=TOPIC, topic_id=topic.topic_id, partition=0, start=first, end=last)
    found = None
    for batch in read_range(cluster, wanted, Reading(has_to_be_whole=False)):
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        for key, value in zip(keys, values, strict=True):
            found = value if key == name.encode() else found
    return None if found is None else decoded(found, name)


def write_beginning(cluster: Cluster, name: str, beginning: Beginning) -> None:
    """Store the first offsets of a stream durably."""
    cluster.create_topic(TOPIC, partitions=1, configs=CONFIGS)
    records = Records(timestamp=time.time_ns() // 1_000_000)
    records.append(name.encode(), encoded(beginning), NO_HEADERS)
    # Not idempotent: a repeated write stores the same value.
    batch = encode.batch(
        b"".join(records.parts),
        count=1,
        timestamp=records.timestamp,
        codec=encode.CODECS["none"],
        producer_id=-1,
        epoch=-1,
        sequence=-1,
    )

    def send() -> None:
        answer = cluster.produce({WHERE: batch})[WHERE]
        check(answer.error_code, f"Produce {WHERE}", answer.message)

    try:
        cluster.retried(send, f"Produce {WHERE}")
    except BrokerError as error:
        raise SamsaError(
            f"the stream's first offsets could not be written to topic {TOPIC}: give the user"
            f" who starts streams the right to write to it: {error}"
        ) from error


def encoded(beginning: Beginning) -> bytes:
    told = {
        "version": FORMAT,
        "offsets": to_json(beginning.offsets),
        "topics": {name: value.hex() for name, value in sorted(beginning.topic_ids.items())},
    }
    return json.dumps(told).encode()


def decoded(value: bytes, name: str) -> Beginning:
    try:
        told: dict[str, Any] = json.loads(value)
        if told["version"] != FORMAT:
            raise SamsaError(
                f"topic {TOPIC} has the beginning of {name!r} in format {told['version']}, and this"
                f" release reads format {FORMAT}: use the release that wrote it, or another queryId"
            )
        return Beginning(
            offsets=from_json(told["offsets"]),
            topic_ids={topic: bytes.fromhex(text) for topic, text in told["topics"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SamsaError(
            f"topic {TOPIC} has a record for {name!r} that Samsa did not write: {error!r}; give the"
            " stream another queryId"
        ) from error
