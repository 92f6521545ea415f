"""Numbers, sizes and times of the messages page."""

from tests.extras import requires
from tests.node import evaluated

pytestmark = requires("node")

WORDS = "messages/words.js"


def test_numbers_of_64_bits_stay_exact() -> None:
    found = evaluated(WORDS, "given.map(m.number)", ["9223372036854775807", 1284, "-5", "x"])

    assert found == ["9,223,372,036,854,775,807", "1,284", "-5", "x"]


def test_sizes_have_binary_units() -> None:
    found = evaluated(WORDS, "given.map(m.size)", [0, 1023, 1536, 18 * 1024**2, 5 * 1024**5])

    assert found == ["0 B", "1023 B", "1.5 KiB", "18 MiB", "5120 TiB"]


def test_a_share_is_of_the_way_in_either_direction() -> None:
    cases = [["0", "50", "200"], ["200", "150", "0"], ["5", "5", "5"], ["0", "9", "3"]]

    found = evaluated(WORDS, "given.map((each) => m.share(...each))", cases)

    assert found == [0.25, 0.25, 1, 1]


def test_a_time_is_in_the_zone_of_the_page_with_utc_in_its_title() -> None:
    expression = "given.map((each) => new m.Clock(each[0]).shown(each[1]))"
    cases = [["Europe/Berlin", "1763546400123"], ["UTC", "1763546400123"], ["UTC", None]]

    berlin, utc, none = evaluated(WORDS, expression, cases)

    assert berlin["text"] == "2025-11-19 11:00:00.123"
    assert berlin["title"] == (
        "2025-11-19 11:00:00.123 Europe/Berlin (GMT+01:00) · 2025-11-19 10:00:00.123 UTC"
        " · 1763546400123 ms"
    )
    assert utc["title"] == "2025-11-19 10:00:00.123 UTC · 1763546400123 ms"
    assert none["text"] == "none"


def test_a_time_beyond_any_calendar_is_shown_as_its_number() -> None:
    found = evaluated(WORDS, "new m.Clock('UTC').shown(given)", str(2**63 - 1))

    assert found["text"] == "9223372036854775807 ms"
