"""Figures of a task: counts grow over its slices, rates are those of its last seconds."""

from dataclasses import asdict

from connectors.runtime import figures
from connectors.runtime.figures import Account, Figures
from connectors.sdk.records import JobBatch


def test_counts_go_on_where_the_task_was_before() -> None:
    account = Account({figures.READ: 100, "read_per_s": 3.0}, 0.0)

    first = account.after({figures.READ: 10}, 2.0)
    second = account.after({figures.READ: 40}, 7.0)

    assert (first[figures.READ], first["read_per_s"]) == (110, 5.0)
    assert (second[figures.READ], second["read_per_s"]) == (140, 6.0)
    assert second[figures.WRITTEN] == 0


def test_a_rate_falls_when_nothing_more_comes() -> None:
    account = Account({}, 0.0)
    account.after({figures.WRITTEN: 500}, 5.0)

    assert account.after({figures.WRITTEN: 500}, 10.0)["written_per_s"] == 0.0


def test_too_short_a_time_says_nothing_about_a_rate() -> None:
    at_once = Account({"read_per_s": 3.0}, 0.0).after({figures.READ: 10}, 0.01)
    account = Account({}, 0.0)
    account.after({figures.READ: 50}, 5.0)
    rest = account.after({figures.READ: 50}, 5.2)

    assert (at_once[figures.READ], at_once["read_per_s"]) == (10, 3.0)
    assert rest["read_per_s"] == 10.0


def test_a_slice_names_each_of_its_topics_once() -> None:
    counted = Figures()
    for topic in ("a", "b", "a"):
        counted.use(topic)

    assert counted.topics() == {"a", "b"}


def batch(records: int) -> JobBatch:
    return JobBatch(
        records=records,
        rows=records,
        read_s=0.5,
        write_s=1.5,
        waited_s=None,
        newest_ms=None,
        ended_ms=1000,
    )


def test_the_last_batch_of_a_job_stays_until_there_is_another_one() -> None:
    counted = Figures()
    counted.note(batch(7))
    counted.note(batch(9))
    account = Account({figures.BATCH: {"records": 3}}, 0.0)

    before = account.after({}, 1.0, Figures().batch())
    after = account.after({}, 2.0, counted.batch())

    assert before[figures.BATCH] == {"records": 3}
    assert after[figures.BATCH] == asdict(batch(9))
    assert account.after({}, 3.0)[figures.BATCH] == asdict(batch(9))
    assert figures.BATCH not in Account({}, 0.0).after({}, 1.0)
