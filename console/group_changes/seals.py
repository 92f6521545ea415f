"""Keeps plans of group changes in the browser between preview and apply, signed for their user.

Nothing is stored on the server. A seal is compressed but not secret: its content was shown.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from django.core import signing

from brokers.controlplane.services import GroupChangeKind
from console.group_changes.plans import GroupPlan, LeftOut, PlannedStep
from gateway.kafka.values import Place

# The time that a user has to review a preview.
MAX_AGE_S: Final = 3600
# Django accepts forms of 2.5 MB; a plan of MAX_PLACES is far smaller unless each of its partitions
# is of another topic with the longest name.
MAX_CHARS: Final = 2_000_000
_PURPOSE: Final = "samsa.group-plan"


class BadSeal(Exception):
    """The seal is invalid, or a plan is too large to be sealed."""


def seal(plan: GroupPlan, *, holder: str) -> str:
    """Return a plan as text that only this holder can apply, for an hour."""
    text = signing.dumps(_plain(plan), salt=_salt(holder), compress=True)
    if len(text) > MAX_CHARS:
        raise BadSeal(
            f"the plan takes {len(text)} characters, and {MAX_CHARS} is the most: choose fewer"
            " topics"
        )
    return text


def open_seal(text: str, *, holder: str) -> GroupPlan:
    """Return the sealed plan. Raises BadSeal if it is expired, of another user, or invalid."""
    # A text that is too long is no seal; nor is an empty one.
    text = text if len(text) <= MAX_CHARS else ""
    try:
        return _plan(signing.loads(text, salt=_salt(holder), max_age=MAX_AGE_S))
    except signing.BadSignature as error:
        raise BadSeal(
            f"this is not a plan that was shown here within the last {MAX_AGE_S // 60} minutes: "
            "preview the change again, then apply it"
        ) from error


def _salt(holder: str) -> str:
    return f"{_PURPOSE}:{json.dumps(holder)}"


def _plain(plan: GroupPlan) -> dict[str, Any]:
    topics = list(dict.fromkeys(step.place.topic for step in plan.steps))
    numbers = {topic: number for number, topic in enumerate(topics)}
    return {
        "kind": plan.kind.value,
        "cluster": plan.cluster_id,
        "group": plan.group,
        "state": plan.state,
        "in_words": plan.in_words,
        "made": plan.made_at_ms,
        "topics": topics,
        "ids": dict(plan.topic_ids),
        "steps": [
            (
                *(numbers[step.place.topic], step.place.partition, step.before, step.after),
                *(step.start, step.end, step.skipped, step.read_again, step.note),
            )
            for step in plan.steps
        ],
        "left": [(each.what, each.reason) for each in plan.left_out],
        "topic": plan.topic,
        "digest": plan.digest,
        "asked": dict(plan.asked),
        "options": plan.options,
        "targets": plan.targets,
        "refusal": plan.refusal,
    }


def _plan(told: Mapping[str, Any]) -> GroupPlan:
    topics = told["topics"]
    return GroupPlan(
        kind=GroupChangeKind(told["kind"]),
        cluster_id=told["cluster"],
        group=told["group"],
        state=told["state"],
        in_words=told["in_words"],
        made_at_ms=told["made"],
        steps=tuple(
            PlannedStep(
                place=Place(topic=topics[topic], partition=partition),
                before=before,
                after=after,
                start=start,
                end=end,
                skipped=skipped,
                read_again=read_again,
                note=note,
            )
            for topic, partition, before, after, start, end, skipped, read_again, note in told[
                "steps"
            ]
        ),
        topic_ids=told["ids"],
        left_out=tuple(LeftOut(what=what, reason=reason) for what, reason in told["left"]),
        topic=told["topic"],
        digest=told["digest"],
        asked=told["asked"],
        options=tuple(told["options"]),
        targets=tuple(told["targets"]),
        refusal=told["refusal"],
    )
