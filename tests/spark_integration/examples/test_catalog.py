"""The list of examples names what is there."""

from spark_integration.examples.catalog import EXAMPLES, topics_of_metrics
from tests.tidy.project import ROOT


def test_each_example_has_its_job_and_its_page_which_names_it() -> None:
    for name, example in EXAMPLES.items():
        assert (ROOT / example.source).is_file()
        page = (ROOT / example.page).read_text(encoding="utf-8")
        assert f"./samsa spark example {name}" in page
        assert example.source in page


def test_generated_records_have_a_topic() -> None:
    for example in EXAMPLES.values():
        assert bool(example.topic) == (example.make_up is not None)


def test_the_rollups_have_topics_beside_the_one_that_they_read() -> None:
    assert [topic.name for topic in topics_of_metrics("m")] == ["m-throughput", "m-lag"]
