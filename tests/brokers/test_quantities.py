"""Sizes and durations as users write them, and as pages show them."""

import random

import pytest

from brokers import quantities
from brokers.quantities import MAX_INT64, BadQuantity, Unit


@pytest.mark.parametrize(
    ("key", "typed", "stored"),
    [
        ("retention.ms", "2d", "172800000"),
        ("retention.ms", "12 h", "43200000"),
        ("retention.ms", "1h30m", "5400000"),
        ("retention.ms", "1.5 hours", "5400000"),
        ("retention.ms", "1 week", "604800000"),
        ("retention.ms", "unlimited", "-1"),
        ("retention.ms", "-1", "-1"),
        ("retention.ms", " 5 ", " 5 "),
        ("retention.bytes", "5 GiB", str(5 * 2**30)),
        ("retention.bytes", "500 MB", "500000000"),
        ("retention.bytes", "5Gi", str(5 * 2**30)),
        ("retention.bytes", "No limit", "-1"),
        ("flush.ms", "never", str(MAX_INT64)),
        ("topic.creation.default.retention.ms", "forever", "-1"),
        ("log.retention.hours", "7d", "168"),
        ("log.cleaner.dedupe.buffer.size", "128MiB", str(128 * 2**20)),
        ("cleanup.policy", "2d", "2d"),
        ("retention.ms", "1" * 100_000 + "d", "1" * 100_000 + "d"),
        ("min.cleanable.dirty.ratio", "0.5", "0.5"),
    ],
)
def test_typed_quantity_becomes_the_number_that_is_stored(
    key: str, typed: str, stored: str
) -> None:
    assert quantities.plain(key, typed) == stored


@pytest.mark.parametrize(
    ("key", "typed", "said"),
    [
        ("retention.ms", "2x", "is not a duration: write 2d, 12h, 1h30m"),
        ("retention.ms", "30m 1h", "is not a duration"),
        ("retention.ms", "-2d", "is not a duration"),
        ("retention.ms", "2d ago", "is not a duration"),
        ("retention.ms", "5 GiB", "is not a duration"),
        ("retention.ms", "0.5ms", "is not a whole number of milliseconds"),
        ("log.retention.hours", "90m", "is not a whole number of hours"),
        ("retention.bytes", "5 G", "is not a size: write 5 GiB, 500 MB"),
        ("retention.bytes", "1 GiB 5 MiB", "is not a size"),
        ("segment.bytes", "unlimited", "is not a size"),
    ],
)
def test_text_that_is_no_quantity_is_refused_with_examples(key: str, typed: str, said: str) -> None:
    with pytest.raises(BadQuantity, match=said):
        quantities.plain(key, typed)


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("retention.ms", "86400000", "1 d"),
        ("retention.ms", "5400000", "1 h 30 min"),
        ("retention.ms", "123456789", "about 1 d 10 h"),
        ("retention.ms", "-1", "no limit"),
        ("flush.ms", str(2**63 - 1), "never"),
        ("segment.bytes", "1073741824", "1 GiB"),
        ("segment.bytes", "1610612736", "1.5 GiB"),
        ("retention.bytes", "500000000", "500 MB"),
        ("max.message.bytes", "1048588", "about 1 MiB"),
        ("max.message.bytes", "12", ""),
        ("cleanup.policy", "<b>", ""),
        ("retention.ms", "soon", ""),
        ("retention.ms", "9" * 5_000, ""),
    ],
)
def test_stored_number_is_worded_in_large_units(key: str, text: str, words: str) -> None:
    assert quantities.in_words(key, text) == words


def test_words_that_are_exact_are_read_as_the_same_number() -> None:
    drawn = random.Random(23)
    for key in ("retention.ms", "log.retention.minutes", "retention.bytes", "flush.ms"):
        steps = (1, 2**10, 2**20, 1_000, 10**9) if "bytes" in key else (1, 60_000, 86_400_000)
        for _ in range(500):
            number = str(drawn.randrange(1, 5_000) * drawn.choice(steps))
            words = quantities.in_words(key, number)
            if words and not words.startswith("about"):
                assert quantities.plain(key, words) == number


def test_every_unit_has_words_and_a_length() -> None:
    for unit in Unit:
        assert quantities.parse(unit, "2 kB" if unit is Unit.BYTES else "2d")
        assert quantities.words_of(unit, 5_000)
