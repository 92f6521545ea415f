"""What a process takes of its machine."""

from brokers.server.footprint import memory_bytes


def test_the_memory_of_this_process_is_told() -> None:
    told = memory_bytes()

    assert told is not None
    assert 5_000_000 < told < 50_000_000_000
