"""Sparklines as pages get them."""

import math

from console.queries.sparks import MAX_POINTS, spark


def test_a_line_is_one_shape_and_its_picture_is_hidden_from_readers() -> None:
    picture = spark([0.0, 5.0, 10.0], "10 MiB/s")

    assert picture.count("<polyline") == 1
    assert 'points="2,18 48,10 94,2"' in picture
    assert 'aria-hidden="true"' in picture
    assert '<span class="unseen">10 MiB/s</span>' in picture
    assert "style" not in picture


def test_a_gap_is_a_gap_and_a_lonely_sample_a_dot() -> None:
    picture = spark([1.0, 1.0, None, 2.0, math.nan, 1.0, 1.0])

    assert (picture.count("<polyline"), picture.count("<circle")) == (2, 1)


def test_zero_all_the_time_is_a_line_at_the_bottom() -> None:
    assert "2,18 94,18" in spark([0.0, 0.0])


def test_no_samples_are_said_and_not_drawn() -> None:
    assert spark([None, None]) == '<span class="spark faint">no samples</span>'
    assert spark([]) == '<span class="spark faint">no samples</span>'


def test_without_a_text_the_numbers_are_said() -> None:
    assert "between 1 and 3, 2 last" in spark([1.0, 3.0, 2.0])


def test_many_samples_keep_their_peaks() -> None:
    samples = [0.0] * (MAX_POINTS * 10)
    samples[555] = 7.0

    picture = spark(samples)

    assert picture.count(",") <= MAX_POINTS + 5
    assert ",2 " in picture


def test_a_text_stays_a_text() -> None:
    assert "<b>" not in spark([1.0], "<b>")
