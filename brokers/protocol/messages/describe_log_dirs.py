"""DescribeLogDirs: show the log dirs of this broker and how much each partition takes.
API 35, versions 1-5, flexible from 2.

Each broker speaks for itself only, so tools ask them all.

Versions:
  1  a throttled answer is sent at once (KIP-219); the API is KIP-113, the oldest left by KIP-896
  2  flexible (KIP-482)
  3  error code of the whole answer; before, missing rights gave an empty list of log dirs
  4  total_bytes and usable_bytes (KIP-827)
  5  is_cordoned (KIP-1066)
"""

from brokers.protocol.schema import INT32, Message, array, boolean, int16, int32, int64, string


class DescribableLogDirTopic(Message):
    topic: str = string()
    partitions: list[int] = array(INT32)


class DescribeLogDirsRequest(Message, key=35, versions=(1, 5), flexible=2):
    topics: list[DescribableLogDirTopic] | None = array(
        DescribableLogDirTopic,
        "Null for every partition; partitions not on this broker are left out of the answer.",
        nullable=0,
    )


class DescribeLogDirsPartition(Message):
    partition_index: int = int32()
    partition_size: int = int64("Bytes of all segments, indexes not counted.")
    offset_lag: int = int64(
        "How far the log end is behind the high watermark, or a future replica's behind the "
        "present one's; -1 if not known."
    )
    is_future_key: bool = boolean("True for a copy that is on its way into this log dir.")


class DescribeLogDirsTopic(Message):
    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


class DescribeLogDirsResult(Message):
    error_code: int = int16("KAFKA_STORAGE_ERROR for a log dir that has failed.")
    log_dir: str = string("Absolute path.")
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(
        "Size of the file system; -1 if not known.", default=-1, since=4, ignorable=True
    )
    usable_bytes: int = int64(
        "The bytes that this process can still use; -1 if unknown.",
        default=-1,
        since=4,
        ignorable=True,
    )
    is_cordoned: bool = boolean("True where no new partitions are placed.", since=5, ignorable=True)


class DescribeLogDirsResponse(Message, key=35, versions=(1, 5), flexible=2):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16(
        "CLUSTER_AUTHORIZATION_FAILED without the right to describe the cluster.",
        since=3,
        ignorable=True,
    )
    results: list[DescribeLogDirsResult] = array(
        DescribeLogDirsResult, "One entry for each log dir."
    )
