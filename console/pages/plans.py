"""Plans, previews and applies changes: the only way in which a page changes the cluster.

A form makes actions and returns `previewed`; exactly what was shown is applied when its seal is
returned. Rights are checked for each action, both times.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from django.contrib import messages
from django.db import Error
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import (
    Action,
    AlterConfigs,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
)
from brokers.controlplane import services
from brokers.protocol.errors import ErrorCode, KafkaError
from console.kept_forms import keeps_form, typed_in
from console.origins import origin_of
from console.pages.errors import error_page
from console.pages.form_addresses import takes_forms
from console.plan_rights import denied, hidden
from console.queries.frame import frame
from console.queries.plans import plan_view
from gateway.access.requirements import signed_in
from gateway.access.selectors import rights_of

CONFLICT: Final = 409
BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403


def previewed(
    request: HttpRequest,
    *,
    cluster_id: str,
    actions: Sequence[Action],
    follows: Sequence[str] = (),
) -> HttpResponse:
    """Show the effects of actions, with an apply button if the user has the rights.

    `follows` are sentences on present effects, which a plan cannot depend on.
    """
    rights, holder = rights_of(request), request.user.get_username()
    if reason := hidden(rights, cluster_id, actions):
        return error_page(FORBIDDEN, title="You may not see this plan", next_step=reason)
    try:
        reading = plan_view(cluster_id, actions, rights, holder=holder, now_ms=_now_ms())
    except KafkaError as error:
        return error_page(
            BAD_REQUEST, title="This change cannot be planned", next_step=error.message
        )
    context = {
        "page": "plan",
        "reading": reading,
        "data": reading.data,
        "denied": denied(rights, cluster_id, actions),
        "follows": follows,
        "back": _before(cluster_id, actions),
    }
    return render(request, "console/plan.html", context)


def _overview(_request: HttpRequest) -> str:
    return reverse("console:overview")


@signed_in
@keeps_form()
@takes_forms(_overview)
def preview_again(request: HttpRequest) -> HttpResponse:
    """Plan the same actions again, on the present cluster; automatic choices are made again."""
    given = typed_in(request) or QueryDict()
    try:
        plan = services.open_seal(given.get("plan", ""), holder=request.user.get_username())
    except KafkaError as error:
        return error_page(BAD_REQUEST, title="This plan is too old", next_step=error.message)
    actions = [unfixed(proposal.action) for proposal in plan.proposals]
    return previewed(request, cluster_id=plan.cluster_id, actions=actions)


@signed_in
@keeps_form()
@takes_forms(_overview)
def apply(request: HttpRequest) -> HttpResponse:
    """Apply the previewed plan, all of it or nothing; show one that was kept."""
    if request.method != "POST":
        return preview_again(request)
    try:
        plan = services.open_seal(request.POST.get("plan", ""), holder=request.user.get_username())
    except KafkaError as error:
        return error_page(BAD_REQUEST, title="This plan cannot be applied", next_step=error.message)
    actions = [proposal.action for proposal in plan.proposals]
    rights = rights_of(request)
    if reason := denied(rights, plan.cluster_id, actions):
        return error_page(FORBIDDEN, title="You may not apply this plan", next_step=reason)
    try:
        outcomes = services.apply_plan(
            cluster_id=plan.cluster_id,
            proposals=plan.proposals,
            origin=origin_of(request),
            now_ms=_now_ms(),
        )
    except Error:
        return error_page(
            503,
            title="The result of the plan is unknown: the database did not answer",
            next_step="Send the same plan again by reloading this page: it is done once at most.",
        )
    refused = [
        outcome
        for outcome in outcomes
        if outcome.error not in {ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED}
    ]
    if refused:
        context = {
            "page": "plan",
            "frame": frame(plan.cluster_id, rights),
            "outcome": refused[0],
            "has_moved": refused[0].error is ErrorCode.INVALID_UPDATE_VERSION,
            "plan": request.POST["plan"],
        }
        return render(request, "console/plan_refused.html", context, status=CONFLICT)
    messages.success(request, f"The plan was applied, as metadata {outcomes[-1].version}.")
    return redirect(_after(plan.cluster_id, actions))


def unfixed(action: Action) -> Action:
    """Return an action without what a plan has chosen for it."""
    match action:
        case CreateTopic(assignments=tuple(assignments)):
            return replace(
                action,
                assignments=None,
                partitions=len(assignments),
                replication_factor=len(assignments[0]),
            )
        case CreatePartitions():
            return replace(action, assignments=None)
        case DeleteTopic(name=str(name)):
            return DeleteTopic(name=name)
        case _:
            return action


def _before(cluster_id: str, actions: Sequence[Action]) -> str:
    """Return the page that shows the state before the plan."""
    match actions:
        case [CreateTopic()]:
            return f"{reverse('console:topics')}?cluster={cluster_id}"
        case [DeleteTopic(name=str(name))]:
            return f"{reverse('console:topic', args=[name])}?cluster={cluster_id}"
        case _:
            return _after(cluster_id, actions)


def _after(cluster_id: str, actions: Sequence[Action]) -> str:
    """Return the page that shows the result. Derived only from the plan, not from other input."""
    view, arguments, tab = "console:overview", [], ""
    match actions:
        case [CreateTopic(name=name)]:
            view, arguments = "console:topic", [name]
        case [CreatePartitions(name=name)]:
            view, arguments, tab = "console:topic", [name], "tab=partitions&"
        case [AlterConfigs(resource_type=ResourceType.TOPIC, name=name)]:
            view, arguments, tab = "console:topic", [name], "tab=configs&"
        case [DeleteTopic()]:
            view = "console:topics"
        case _:
            pass
    return f"{reverse(view, args=arguments)}?{tab}cluster={cluster_id}"


def _now_ms() -> int:
    return int(1000 * time.time())
