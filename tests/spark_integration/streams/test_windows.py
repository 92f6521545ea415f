"""Windows cover every time, as often as they overlap."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_integration.streams.errors import StreamRefused
from spark_integration.streams.windows import Span, Window, hopping, session, spans_of, tumbling

TIMES = st.integers(-(10**15), 10**15)


@given(time=TIMES, size=st.integers(1, 10_000))
def test_one_tumbling_window_holds_a_time(time: int, size: int) -> None:
    (span,) = spans_of(tumbling(f"{size}ms"), time)

    assert span.start <= time < span.end
    assert span.start % (size * 1000) == 0


@given(time=TIMES, slide=st.integers(1, 1000), extra=st.integers(0, 5000))
def test_hopping_windows_are_all_that_hold_a_time(time: int, slide: int, extra: int) -> None:
    size = min(slide + extra, slide * 1000)
    spans = list(spans_of(hopping(f"{size}ms", slide=f"{slide}ms"), time))

    assert all(span.start <= time < span.end for span in spans)
    assert all(span.end - span.start == size * 1000 for span in spans)
    assert size // slide <= len(set(spans)) == len(spans) <= -(-size // slide)


def test_a_session_begins_with_its_record_and_lasts_for_the_gap() -> None:
    assert list(spans_of(session("5s"), 7)) == [Span(start=7, end=5_000_007)]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: tumbling("0s"), "tumbling: '0s'"),
        (lambda: hopping("1m", slide="2m"), "slide '2m' is longer than the size '1m'"),
        (lambda: hopping("1h", slide="1s"), "puts a record into 3600 windows"),
        (lambda: session("often"), "session: 'often'"),
    ],
)
def test_windows_that_make_no_sense_are_refused(make: Callable[[], Window], told: str) -> None:
    with pytest.raises(StreamRefused) as caught:
        make()

    assert told in str(caught.value)
