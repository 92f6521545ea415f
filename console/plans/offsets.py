"""Adapts plans of the offsets of a stopped source connector, which `connectors` applies."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from connectors import refusals, selectors, services
from console.forms.connectors import offsets_from
from console.plans import previews
from console.plans.kind import Author, Kind
from console.plans.previews import Consequence, Link, Outcome, Preview, Step, before_and_after
from console.queries.failures import sentence_of, status_of
from console.queries.frame import frame
from console.queries.links import link
from console.queries.reading import moment
from gateway.access.operations import Kind as ResourceKind
from gateway.access.operations import Operation
from gateway.kafka import shown_names

CHANGED: Final = "The offsets of {} are changed: it continues from there once it is resumed."
RESET: Final = "The offsets of {} are reset: once resumed, it starts from the beginning."


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsPlan:
    """New offsets of a source. `text` has them as JSON; empty if all are forgotten."""

    cluster: str
    name: str
    made_at_ms: int
    text: str
    # The first places whose offset changes, as JSON: place, before and after.
    changes: tuple[tuple[str, str | None, str | None], ...]
    # Of all changes.
    count: int
    # Of the offsets when the plan was made, so that it is applied to no others, nor twice.
    stored: str


class NoGroups:
    """Offsets of groups, which no source has."""

    def committed(self, group: str) -> NoReturn:
        raise AssertionError(group)

    def commit(self, group: str, offsets: Mapping[Any, int]) -> NoReturn:
        raise AssertionError(group, offsets)

    def delete(self, group: str, places: Sequence[Any]) -> NoReturn:
        raise AssertionError(group, places)


def digest_of(stored: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> str:
    """Return a digest of the offsets of a source."""
    return hashlib.sha256(json.dumps(stored, sort_keys=True).encode()).hexdigest()


def _preview(author: Author, plan: OffsetsPlan, _number: int) -> Preview:
    name, here = shown_names.shown(plan.name), _address(plan)
    listed, is_reset = len(plan.changes), not plan.text
    note = f"the first {listed:,} of {plan.count:,} places" if plan.count > listed else ""
    changes = {place: (before, after) for place, before, after in plan.changes}
    follows = "from the beginning" if is_reset else "from there"
    return Preview(
        frame=frame(plan.cluster, author.rights),
        section="connectors",
        title=f"{'Forget' if is_reset else 'Change'} offsets of {name}",
        made_at=moment(plan.made_at_ms / 1000),
        crumbs=(
            Link(text="Connect", address=link("connectors", plan.cluster)),
            Link(text=name, address=here),
        ),
        steps=(
            Step(
                tables=(before_and_after("What changes", changes, note=note),),
                consequences=(Consequence(sentence=f"Once it is resumed, it reads {follows}."),),
            ),
        ),
        rests_on=(f"the offsets of {name}, as shown",),
        button="Forget them all" if is_reset else "Change them",
        is_risk=is_reset,
        cancel=here,
    )


def _deny(author: Author, plan: OffsetsPlan) -> str:
    return author.lacks(Operation.ALTER_CONNECTORS, plan.cluster, ResourceKind.CONNECTOR, plan.name)


def _apply(author: Author, plan: OffsetsPlan) -> Outcome:
    try:
        if digest_of(selectors.source_offsets(plan.cluster, plan.name)) != plan.stored:
            return previews.report_changes(
                "connector", ["Its offsets have changed since you looked."]
            )
        if plan.text:
            wanted = offsets_from(plan.text)
            services.alter_offsets(author.by, plan.cluster, plan.name, wanted, groups=NoGroups())
        else:
            services.reset_offsets(author.by, plan.cluster, plan.name, groups=NoGroups())
    except refusals.NotServed as error:
        return Outcome(
            title=f"The offsets of {plan.name} stay as they are",
            notices=(previews.make_refusal(sentence_of(error)),),
            status=status_of(error),
        )
    return Outcome(done=(CHANGED if plan.text else RESET).format(plan.name), address=_address(plan))


def _address(plan: OffsetsPlan) -> str:
    return link("connector", plan.cluster, plan.name, tab="offsets")


KIND: Final = Kind(
    name="offsets",
    subject="connector",
    plan=OffsetsPlan,
    preview=_preview,
    deny=_deny,
    can_apply=lambda _plan: True,
    apply=_apply,
    again=lambda _author, plan: link("connector-offsets", plan.cluster, plan.name),
)
