"""What is counted for whom."""

from gateway.rest.traffic import OTHERS, Counter


def test_counts_of_a_caller_add_up() -> None:
    traffic = Counter()

    traffic.add("token:a", requests=1, records=3, bytes_in=10)
    traffic.add("token:a", requests=1, errors=1, bytes_out=4)

    assert traffic.rows() == {
        "token:a": {
            "requests": 2,
            "records": 3,
            "errors": 1,
            "bytes_in": 10,
            "bytes_out": 4,
            "open": 0,
        }
    }


def test_a_stream_counts_as_open_until_it_ends() -> None:
    traffic = Counter()

    with traffic.opened("token:a"), traffic.opened("token:a"):
        during = traffic.rows()["token:a"]["open"]

    assert (during, traffic.rows()["token:a"]["open"]) == (2, 0)


def test_callers_beyond_the_limit_are_counted_together() -> None:
    traffic = Counter(max_callers=2)

    for name in "abcd":
        traffic.add(name, requests=1)
    traffic.add("a", requests=1)

    assert {key: row["requests"] for key, row in traffic.rows().items()} == {
        "a": 2,
        "b": 1,
        OTHERS: 2,
    }
