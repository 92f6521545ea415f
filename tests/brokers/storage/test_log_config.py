"""A log's configuration is refused where it could not work."""

import pytest

from brokers.storage.log_config import LogConfig


def test_the_defaults_are_kafkas() -> None:
    config = LogConfig()

    assert config.segment_bytes == 1_073_741_824
    assert config.segment_ms == config.retention_ms == 604_800_000
    assert config.segment_index_bytes == 10_485_760
    assert config.index_interval_bytes == 4_096
    assert config.retention_bytes == -1
    assert config.file_delete_delay_ms == 60_000
    assert config.producer_expiration_ms == 86_400_000


@pytest.mark.parametrize(
    "wrong",
    [
        {"segment_bytes": 0},
        {"segment_bytes": 2**31},
        {"segment_index_bytes": 11},
        {"segment_ms": 0},
        {"index_interval_bytes": -1},
    ],
)
def test_values_that_no_log_could_follow_are_a_bug_of_the_caller(wrong: dict[str, int]) -> None:
    with pytest.raises(AssertionError):
        LogConfig(**wrong)  # type: ignore[arg-type]  # one of the numbers


def test_without_jitter_a_segment_rolls_at_its_time() -> None:
    assert LogConfig(segment_ms=77).roll_after_ms("t-0", 5) == 77
