"""Who may read the records of a topic sees what repeats them, and nobody else does."""

import pytest

from connectors.runtime.record_parts import MAX_TOPICS, MayRead, bare, marked, shown

PART = f"the value{marked(' (TOPSECRET-0)', ['orders'])} was out of range"


def of(*readable: str) -> MayRead:
    return lambda topics: bool(topics) and set(topics) <= set(readable)


def test_a_part_is_shown_to_readers_of_its_topics_alone() -> None:
    both = marked("a and b", ["a", "b"])

    assert shown(PART, of("orders")) == "the value (TOPSECRET-0) was out of range"
    assert shown(PART, of("other")) == (
        "the value[hidden: it may repeat records, and you may not read payloads on topic orders]"
        " was out of range"
    )
    assert shown(both, of("a", "b")) == "a and b"
    assert "on topic a, b]" in shown(both, of("a"))


def test_a_part_of_unknown_topics_needs_a_right_on_all() -> None:
    many = marked("x", [f"t{number}" for number in range(MAX_TOPICS + 1)])

    for text in (marked("x", ()), many):
        assert "on all topics]" in shown(text, of("t0"))
        assert shown(text, lambda topics: not topics) == "x"


@pytest.mark.parametrize("cut", range(1, len(PART)))
def test_a_cut_text_hides_the_rest_of_its_part(cut: int) -> None:
    assert "SECRET" not in shown(PART[:cut], of("other"))


def test_a_record_cannot_end_its_part() -> None:
    text = marked("a\x03TOPSECRET\x02other\x1fb", ["orders"])

    assert shown(text, of("other")).count("hidden") == 1
    assert "TOPSECRET" not in shown(text, of("other"))
    assert bare(text) == "aTOPSECRETotherb"


def test_an_empty_part_leaves_no_mark() -> None:
    assert marked("", ["orders"]) == ""
