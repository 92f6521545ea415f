"""Seals of plans: what was shown comes back whole, for one holder, and of a bounded size."""

import pytest

from brokers.controlplane.services import GroupChangeKind
from console.group_changes.plans import MAX_PLACES, GroupPlan, LeftOut
from gateway.access import seals
from gateway.access.seals import BadSeal
from tests.builders.group_plans import group_plan


def sealed(plan: GroupPlan) -> str:
    return seals.seal("group", plan, holder="alice")


def opened(text: str, *, holder: str = "alice", kind: str = "group") -> GroupPlan:
    found_kind, plan = seals.open_seal(text, holder=holder, types={kind: GroupPlan})
    assert found_kind == "group"
    assert isinstance(plan, GroupPlan)
    return plan


@pytest.mark.parametrize("kind", GroupChangeKind)
def test_sealed_plan_is_opened_as_it_was(kind: GroupChangeKind) -> None:
    plan = group_plan(
        3,
        kind=kind,
        group='<"é\u202e/\\ 0',
        left_out=(LeftOut(what="topic a", reason="it is gone"),),
        digest="d",
        refusal="no",
    )

    assert opened(sealed(plan)) == plan


@pytest.mark.parametrize("holder", ["olga", "alice:", "", "alice\0"])
def test_seal_is_opened_by_its_holder_only(holder: str) -> None:
    with pytest.raises(BadSeal, match="within the last 60 minutes"):
        opened(sealed(group_plan()), holder=holder)


@pytest.mark.parametrize("text", ["", "x", "x" * (seals.MAX_CHARS + 1)])
def test_text_without_a_seal_is_refused(text: str) -> None:
    with pytest.raises(BadSeal, match="preview the change again"):
        opened(text)


def test_seal_of_another_kind_or_of_other_fields_is_refused() -> None:
    as_before = seals.seal("group", LeftOut(what="a", reason="b"), holder="alice")

    for text, kind in ((sealed(group_plan()), "order"), (as_before, "group")):
        with pytest.raises(BadSeal, match="preview the change again"):
            opened(text, kind=kind)


def test_old_seal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = sealed(group_plan())
    monkeypatch.setattr(seals, "MAX_AGE_S", -1)

    with pytest.raises(BadSeal, match="preview the change again"):
        opened(text)


def test_largest_plan_fits_into_a_form_with_room_to_spare() -> None:
    text = sealed(group_plan(MAX_PLACES, topic="t" * 249))

    assert len(text) < seals.MAX_CHARS / 4
    assert len(opened(text).steps) == MAX_PLACES


def test_plan_too_large_for_a_form_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "MAX_CHARS", 100)

    with pytest.raises(BadSeal, match="100 is the most: make several smaller plans"):
        sealed(group_plan(9))


def test_plan_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(BadSeal, match="not Unicode"):
        sealed(group_plan(group="\ud800"))
