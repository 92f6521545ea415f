"""What is counted can be read, in the form that Prometheus reads."""

import re

from brokers.server.metrics import BUCKETS, ROWS, Histogram, Metrics, render

LINE = re.compile(r'[a-z_]+(\{([a-z]+="[^"\\]*(\\.[^"\\]*)*",?)+\})? [0-9.e+-]+')


def test_every_row_is_an_attribute_and_says_what_it_means() -> None:
    metrics = Metrics()

    for row in ROWS:
        assert hasattr(metrics, row.attribute), row.name
        assert row.sentence.endswith("."), row.name
    assert {row.attribute for row in ROWS} | {"clients"} == set(Metrics.__slots__)


def test_the_text_is_what_prometheus_reads() -> None:
    metrics = Metrics()
    metrics.requests_of("Produce").observe(0.0001)
    metrics.closed('odd "reason"\\')
    metrics.bytes_in = 12

    text = "".join(render(metrics))

    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(LINE.fullmatch(line) for line in lines)
    assert "samsa_received_bytes_total 12" in lines
    assert 'samsa_request_seconds_count{api="Produce"} 1' in lines
    assert text.count("# TYPE") == len(ROWS)


def test_a_duration_lies_in_the_bucket_that_bounds_it() -> None:
    histogram = Histogram()

    for seconds in (0, 1e-6, 3e-6, 0.1, 1e9):
        histogram.observe(seconds)

    assert histogram.count == 5
    assert histogram.counts[0] == 1
    assert histogram.counts[1] == 1
    assert histogram.counts[2] == 1
    assert histogram.counts[BUCKETS - 1] == 1


def test_buckets_in_the_text_add_up() -> None:
    metrics = Metrics()
    for power in range(20):
        metrics.loop_delay.observe(2**power / 1e6)

    text = "".join(render(metrics))

    counts = [int(n) for n in re.findall(r"loop_delay_seconds_bucket\{[^}]*\} (\d+)", text)]
    assert counts == sorted(counts)
    assert counts[-1] == 20
