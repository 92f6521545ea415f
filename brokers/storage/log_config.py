"""Settings of a partition's log, taken from the configs of its topic.

Values only, with Kafka's defaults; parsing and validation are elsewhere. One instance is shared by
all partitions of a topic and replaced whole when anything in it changes.
"""

from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

from brokers.protocol.records.validation import ProduceRules

# Positions in index files are int32.
MAX_SEGMENT_BYTES: Final = 2**31 - 1
# Of retention: no limit.
UNLIMITED: Final = -1

DAY_MS: Final = 86_400_000
# Of max.compaction.lag.ms: no limit.
NO_LAG_LIMIT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Sizes in bytes, times in milliseconds; each field is Kafka's topic config of that name."""

    segment_bytes: int = 1024**3
    segment_ms: int = 7 * DAY_MS
    # Spreads the rolls of partitions that were created together: they are earlier by up to this.
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024**2
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = UNLIMITED
    # How long a deleted segment stays for slow readers.
    file_delete_delay_ms: int = 60_000
    # cleanup.policy: whether old segments are deleted by time and size, and whether keys are kept.
    is_deleted: bool = True
    is_compacted: bool = False
    # Of compaction: how long a tombstone stays once the values before it are gone, the share of a
    # log that must be dirty, and the minimum and maximum age of records to compact.
    delete_retention_ms: int = DAY_MS
    min_cleanable_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NO_LAG_LIMIT
    producer_expiration_ms: int = DAY_MS
    # Of coordinators, which go on with less free space on the disk than clients.
    is_internal: bool = False
    rules: ProduceRules = field(default_factory=ProduceRules)

    def __post_init__(self) -> None:
        assert 0 < self.segment_bytes <= MAX_SEGMENT_BYTES, f"segments of {self.segment_bytes} B"
        assert self.segment_index_bytes >= 12, f"{self.segment_index_bytes} B hold no index entry"
        assert self.segment_ms > 0, f"segments roll after {self.segment_ms} ms"
        assert self.index_interval_bytes >= 0, f"index interval of {self.index_interval_bytes} B"

    def roll_after_ms(self, folder: str, base_offset: int) -> int:
        """Return the time that the segment's records may span; jitter comes from its name."""
        jitter = min(self.segment_jitter_ms, self.segment_ms)
        if jitter <= 0:
            return self.segment_ms
        return self.segment_ms - crc32(f"{folder}/{base_offset}".encode()) % jitter
