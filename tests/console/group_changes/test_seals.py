"""Seals of plans: what was shown comes back whole, for one holder, and of a bounded size."""

import pytest

from brokers.controlplane.services import GroupChangeKind
from console.group_changes import seals
from console.group_changes.plans import MAX_PLACES, LeftOut
from console.group_changes.seals import BadSeal
from tests.builders.group_plans import group_plan


@pytest.mark.parametrize("kind", GroupChangeKind)
def test_what_is_sealed_comes_back_as_it_was(kind: GroupChangeKind) -> None:
    plan = group_plan(
        3,
        kind=kind,
        group='<"é\u202e/\\ 0',
        left_out=(LeftOut(what="topic a", reason="it is gone"),),
        digest="d",
        refusal="no",
    )

    assert seals.open_seal(seals.seal(plan, holder="alice"), holder="alice") == plan


@pytest.mark.parametrize("holder", ["olga", "alice:", "", "alice\0"])
def test_a_seal_opens_for_its_holder_only(holder: str) -> None:
    sealed = seals.seal(group_plan(), holder="alice")

    with pytest.raises(BadSeal, match="within the last 60 minutes"):
        seals.open_seal(sealed, holder=holder)


def test_the_largest_plan_fits_into_a_form_with_room_to_spare() -> None:
    topic = "t" * 249
    plan = group_plan(MAX_PLACES, topic=topic)

    sealed = seals.seal(plan, holder="alice")

    assert len(sealed) < seals.MAX_CHARS / 4
    assert len(seals.open_seal(sealed, holder="alice").steps) == MAX_PLACES


def test_a_plan_that_no_form_would_carry_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "MAX_CHARS", 100)

    with pytest.raises(BadSeal, match="100 is the most: choose fewer topics"):
        seals.seal(group_plan(9), holder="alice")
