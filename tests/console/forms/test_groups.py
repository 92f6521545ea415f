"""The form that resets offsets: what it is read as, and what a link to it holds."""

from zoneinfo import ZoneInfo

import pytest
from django.http import QueryDict

from console.forms.groups import ResetForm
from tests.builders.messages import NOW


def form(zone: str, before: dict[str, str], data: QueryDict | None = None) -> ResetForm:
    return ResetForm(
        data, group="billing", now=NOW, zone=ZoneInfo(zone), zone_name=zone, before=before
    )


def posted(zone: str, **fields: str) -> ResetForm:
    data = QueryDict(mutable=True)
    for name, text in {"mode": "time", "scope": "all", "zone": zone, **fields}.items():
        data[name] = text
    return form(zone, {}, data)


@pytest.mark.parametrize(
    ("typed", "instant"),
    [
        ("2026-01-31T12:00", "2026-01-31T11:00:00Z"),
        ("yesterday 12:00", "2026-11-18T11:00:00Z"),
        ("-1h", "2026-11-19T11:00:00Z"),
    ],
)
def test_a_link_to_a_reset_names_an_instant_that_each_reader_sees_in_the_own_zone(
    typed: str, instant: str
) -> None:
    reset = posted("Europe/Berlin", time=typed)
    assert reset.is_valid()

    told = reset.told()

    assert told == {"mode": "time", "scope": "all", "time": instant}
    shown = {zone: form(zone, told)["time"].value() for zone in ("UTC", "Europe/Berlin")}
    assert shown["UTC"] == instant.removesuffix("Z").replace("T", " ")
    for zone, text in shown.items():
        again = posted(zone, time=text)
        assert again.is_valid()
        assert again.asked == reset.asked


def test_a_half_past_two_that_was_chosen_stays_chosen_in_a_link() -> None:
    second = "2026-10-25T01:30:00+00:00"
    reset = posted("Europe/Berlin", time="2026-10-25T02:30", moment=second)
    assert reset.is_valid()

    link = form("Europe/Berlin", reset.told())

    assert link["time"].value() == "2026-10-25 02:30:00+01:00"
