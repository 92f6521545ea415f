"""Adapts plans of a new connector, and of another config of one, which `connectors` applies."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from connectors import drafts, refusals, selectors, services
from connectors.drafts import Draft, Lead
from console.forms.connectors import MASK
from console.plans import previews
from console.plans.kind import BAD_REQUEST, Author, CannotPlan, Kind, NotApplied
from console.plans.previews import (
    Consequence,
    Link,
    Notice,
    Outcome,
    Preview,
    Step,
    before_and_after,
    values,
)
from console.queries.connector_form import json_of
from console.queries.frame import frame
from console.queries.links import link
from console.queries.reading import moment
from gateway.access.operations import Kind as ResourceKind
from gateway.access.operations import Operation
from gateway.kafka import shown_names

# Of an HTTP call: the token stays in the environment.
HEADERS: Final = '-H "Authorization: Bearer $SAMSA_TOKEN" -H "Content-Type: application/json"'
KEPT: Final = "A mask keeps the stored password."
TO_FILL_IN: Final = (
    "Put the passwords in the place of their masks, or a reference such as"
    " ${file:/run/secrets/db:password}."
)
RESTARTED: Final = "No value. The connector restarts, and uses your rights from now on."


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorPlan:
    """A config for a connector. `sealed` has its passwords, and the rest is for display."""

    cluster: str
    name: str
    plugin: str
    # Of the config that is changed; None if there is no such connector yet.
    generation: int | None
    made_at_ms: int
    sealed: str
    title: str
    config: Mapping[str, str]
    changes: tuple[tuple[str, str | None, str | None], ...]
    warnings: tuple[str, ...]
    leads: tuple[Lead, ...]


def plan_of(
    author: Author,
    cluster: str,
    config: Mapping[str, str],
    draft: Draft,
    *,
    stored: selectors.ConnectorInfo | None,
) -> ConnectorPlan:
    """Return the plan of a config, from a draft without errors."""
    assert draft.is_fit, "a form shows the errors of a draft"
    return ConnectorPlan(
        cluster=cluster,
        name=draft.name if stored is None else stored.name,
        plugin=draft.plugin,
        generation=None if stored is None else stored.generation,
        made_at_ms=author.now_ms,
        sealed=drafts.seal(cluster, author.name, config, draft.hidden),
        title=f"{draft.title} {draft.kind}",
        config=dict(sorted(draft.config.items())),
        changes=() if stored is None else tuple(drafts.changed(stored.config, draft, config)),
        warnings=draft.warnings,
        leads=draft.leads,
    )


def config_of(author: Author, plan: ConnectorPlan) -> dict[str, str]:
    """Return the config of a plan in clear. Raises CannotPlan."""
    try:
        return drafts.unseal(plan.cluster, author.name, plan.sealed)
    except refusals.Unfit as error:
        raise CannotPlan("This plan has expired", f"{error}.") from error


def form_address(plan: ConnectorPlan) -> str:
    if plan.generation is None:
        return link("new-connector", plan.cluster, plan.plugin)
    return link("edit-connector", plan.cluster, plan.name)


def _preview(author: Author, plan: ConnectorPlan, _number: int) -> Preview:
    name, is_new = shown_names.shown(plan.name), plan.generation is None
    around = frame(plan.cluster, author.rights)
    of = f"{plan.title} in {around.shown.name}" if around.shown else plan.title
    crumbs = [Link(text="Connect", address=link("connectors", plan.cluster))]
    if not is_new:
        crumbs.append(Link(text=name, address=link("connector", plan.cluster, plan.name)))
    return Preview(
        frame=around,
        section="connectors",
        title=f"Create {name}" if is_new else f"Change {name}",
        note=of,
        made_at=moment(plan.made_at_ms / 1000),
        crumbs=tuple(crumbs),
        notices=tuple(
            Notice(mark="warn", word="No effect", text=warning) for warning in plan.warnings
        ),
        steps=(_step(author, plan),),
        rests_on=() if is_new else (f"the config of {name}, or a restart of it",),
        button="Create" if is_new else "Change it",
        form=form_address(plan),
        cancel=link("connectors", plan.cluster) if is_new else _address(plan),
    )


def _step(author: Author, plan: ConnectorPlan) -> Step:
    has_masks = MASK in plan.config.values()
    if plan.generation is None:
        table = values("This will be created", plan.config, note="passwords are shown as a mask")
    else:
        changes = {key: (before, after) for key, before, after in plan.changes}
        table = before_and_after("What changes", changes, note="this restarts all tasks")
    consequences = [Consequence(sentence=_sentence(lead)) for lead in plan.leads]
    if plan.generation is not None and not plan.changes:
        consequences.insert(0, Consequence(sentence=RESTARTED))
    of_masks = TO_FILL_IN if plan.generation is None else KEPT
    return Step(
        tables=(table,) if table.rows else (),
        consequences=tuple(consequences),
        scripts=_scripts(plan.config, plan.name, site=author.site),
        of_commands=of_masks if has_masks else "",
    )


def _scripts(config: Mapping[str, str], name: str, *, site: str) -> tuple[str, ...]:
    """Return the commands that create or change a connector, one of them for any HTTP client."""
    inner = {key: text for key, text in sorted(config.items()) if key != "name"}
    whole = json.dumps({"name": name, "config": inner}, indent=2, ensure_ascii=False)
    address = shlex.quote(f"{site}/connect/connectors/{quote(name, safe='')}/config")
    return (
        f"./samsa connectors apply -f - <<'END'\n{whole}\nEND",
        f"curl -X PUT {HEADERS} --data-binary @- {address} <<'END'\n{json_of(config)}\nEND",
    )


def _sentence(lead: Lead) -> str:
    if lead.pattern == "*":
        what = f"{lead.kind}s that its config does not name, so any {lead.kind}"
    elif lead.kind == "file":
        what = f"the file{'s' if lead.pattern.endswith('*') else ''} {lead.pattern}"
    else:
        what = lead.pattern
    return f"It will {lead.verb} {what}."


def _deny(author: Author, plan: ConnectorPlan) -> str:
    is_new = plan.generation is None
    operation = Operation.CREATE_CONNECTORS if is_new else Operation.ALTER_CONNECTORS
    return author.lacks(operation, plan.cluster, ResourceKind.CONNECTOR, plan.name)


def _apply(author: Author, plan: ConnectorPlan) -> Outcome:
    config = config_of(author, plan)
    try:
        if plan.generation is None:
            services.create(author.by, plan.cluster, plan.name, config)
            done = f"{plan.name} is created. Its tasks start within seconds."
        else:
            services.edit_config(
                author.by, plan.cluster, plan.name, config, generation=plan.generation
            )
            done = f"The config of {plan.name} is changed, and its tasks restart with it."
    except refusals.Conflict as error:
        return previews.report_changes("connector", [f"{error}."])
    except refusals.Invalid as error:
        raise NotApplied(" ".join(error.validation.errors), status=BAD_REQUEST) from error
    except refusals.NotServed as error:
        raise NotApplied(f"{error}.", status=BAD_REQUEST) from error
    return Outcome(done=done, address=_address(plan))


def _address(plan: ConnectorPlan) -> str:
    return link("connector", plan.cluster, plan.name)


KIND: Final = Kind(
    name="connector",
    subject="connector",
    plan=ConnectorPlan,
    preview=_preview,
    deny=_deny,
    can_apply=lambda _plan: True,
    apply=_apply,
    again=lambda _author, plan: form_address(plan),
)
