"""How much a caller may do: buckets by a clock that is moved by hand."""

import pytest

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.rest.codes import ApiError, Code
from gateway.rest.limits import Limits, Rates


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def caller(name: str = "app") -> Caller:
    return Caller(kind=CallerKind.TOKEN, name=name, rights=Rights(), number=1)


def test_calls_beyond_a_second_are_refused_until_the_bucket_refills() -> None:
    clock = Clock()
    limits = Limits(Rates(requests=10), monotonic=clock)

    for _ in range(10):
        limits.take_request(caller())
    with pytest.raises(ApiError, match="more than 10 calls") as caught:
        limits.take_request(caller())
    assert caught.value.code is Code.TOO_MANY
    assert caught.value.retry_after_s == 1

    clock.now += 0.2
    limits.take_request(caller())


def test_callers_have_buckets_of_their_own() -> None:
    limits = Limits(Rates(requests=1), monotonic=Clock())

    limits.take_request(caller("one"))
    limits.take_request(caller("two"))


def test_a_batch_larger_than_a_bucket_goes_and_is_waited_for_afterwards() -> None:
    clock = Clock()
    limits = Limits(Rates(records=100, bytes=1_000), monotonic=clock)

    assert limits.take_records(caller(), 300, 10) == 0
    assert limits.take_records(caller(), 1, 10) == pytest.approx(2.01)
    clock.now += 2.03
    assert limits.take_records(caller(), 1, 10) == 0


def test_records_that_wait_are_served_in_turn() -> None:
    limits = Limits(Rates(records=100), monotonic=Clock())

    delays = [limits.take_records(caller(), 100, 10) for _ in range(4)]

    assert delays == [0, *(pytest.approx(n + 0.01) for n in range(3))]


def test_bytes_are_counted_beside_records_and_a_refused_call_is_not_counted() -> None:
    limits = Limits(Rates(records=100, bytes=1_000), monotonic=Clock())

    assert limits.take_records(caller(), 1, 3_000) == 0
    with pytest.raises(ApiError, match=r"would wait 2\.0 s") as caught:
        limits.take_records(caller(), 50, 5_000, patience_s=2)
    assert caught.value.code is Code.TOO_MANY
    assert caught.value.retry_after_s == 3

    assert limits.take_records(caller(), 1, 1, patience_s=3) == pytest.approx(2.001)


def test_no_limit_never_waits() -> None:
    limits = Limits(Rates(requests=0, records=0, bytes=0), monotonic=Clock())

    for _ in range(1_000):
        limits.take_request(caller())
        assert limits.take_records(caller(), 10_000, 10_000_000) == 0
