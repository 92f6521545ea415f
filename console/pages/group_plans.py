"""Shows plans of changes of groups, and applies them when their seal is returned.

Applies exactly what was shown, and only if everything that it depends on is unchanged.
"""

import time
from itertools import islice
from typing import Final
from urllib.parse import urlencode

from django.contrib import messages
from django.db import Error
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from brokers.controlplane.services import GroupChangeKind
from console import group_names
from console.group_changes import seals
from console.group_changes.applying import Result, apply
from console.group_changes.desk import desk
from console.group_changes.plans import GroupPlan
from console.group_changes.seals import BadSeal
from console.kept_forms import keeps_form, typed_in
from console.origins import origin_of
from console.pages.errors import error_page
from console.pages.form_addresses import takes_forms
from console.queries import group_plans as query
from console.queries import live
from console.queries.frame import frame
from console.queries.links import link
from gateway.access.grants import Resource, Rights, decide
from gateway.access.operations import Kind, Operation
from gateway.access.requirements import signed_in
from gateway.access.selectors import rights_of
from gateway.access.turns import TooBusy
from gateway.kafka import shown_names
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.errors import Kind as FailureKind
from gateway.kafka.offset_plan import csv_of

CONFLICT: Final = 409
# A call that fails midway refuses thousands, all for the same reason.
NAMED_REFUSALS: Final = 100
SLOW: Final = "See whether the brokers are up and try again; fewer topics take less time."
RIGHTS: Final = {
    GroupChangeKind.RESET_OFFSETS: Operation.RESET_GROUPS,
    GroupChangeKind.DELETE_OFFSETS: Operation.RESET_GROUPS,
    GroupChangeKind.DELETE_GROUP: Operation.DELETE_GROUPS,
}
STATUS: Final = {
    FailureKind.NOT_FOUND: 404,
    FailureKind.CONFLICT: CONFLICT,
    FailureKind.USAGE: 400,
}
FORMS: Final = {
    GroupChangeKind.RESET_OFFSETS: "reset-offsets",
    GroupChangeKind.DELETE_OFFSETS: "delete-offsets",
    GroupChangeKind.DELETE_GROUP: "delete-group",
}
DONE: Final = {
    GroupChangeKind.RESET_OFFSETS: "Offsets of group {group} were reset in {count}.",
    GroupChangeKind.DELETE_OFFSETS: "Offsets of group {group} were deleted in {count}.",
    GroupChangeKind.DELETE_GROUP: "Group {group} was deleted.",
}


UNSEEN: Final = (
    "The collector has not seen the change yet: the lag below may still be the one before it. This"
    " page shows the new one as soon as it comes."
)


def plan_page(
    request: HttpRequest,
    plan: GroupPlan,
    *,
    sealed: str,
    number: int = 1,
    status: int = 200,
    refused: str = "",
) -> HttpResponse:
    rights = rights_of(request)
    reading = query.group_plan_page(
        frame(plan.cluster_id, rights), plan, sealed=sealed, number=number
    )
    context = {
        "page": "groups",
        "reading": reading,
        "data": reading.data,
        "denied": _denied(rights, plan),
        "refused": refused,
        "again": _form_address(plan),
    }
    return render(request, "console/group_plan.html", context, status=status)


def decided(rights: Rights, operation: Operation, cluster: str, kind: Kind, name: str) -> str:
    decision = decide(rights, operation, Resource(kind=kind, cluster=cluster, name=name))
    return "" if decision.is_allowed else decision.reason


def status_of(error: TooBusy | KafkaFailure) -> int:
    return 503 if isinstance(error, TooBusy) else STATUS.get(error.kind, 503)


def said(error: TooBusy | KafkaFailure) -> str:
    if isinstance(error, TooBusy):
        return f"Too much is asked at once: {error}. Try again in a moment."
    if error.name == "REQUEST_TIMED_OUT":
        return f"{error.message}. {SLOW}"
    return f"{error.message}. {error.next_step[:1].upper()}{error.next_step[1:]}."


def _list_of_groups(request: HttpRequest) -> str:
    return link("groups", request.GET.get("cluster", ""))


@signed_in
@keeps_form()
@takes_forms(_list_of_groups)
def show(request: HttpRequest) -> HttpResponse:
    """Show another page of a previewed plan, or send it as a file."""
    opened = _opened(request)
    if isinstance(opened, HttpResponse):
        return opened
    plan, sealed = opened
    if request.POST.get("form") == "csv":
        return _file(plan)
    return plan_page(request, plan, sealed=sealed, number=_number(request.POST.get("page", "")))


@signed_in
@keeps_form()
@takes_forms(_list_of_groups)
def apply_plan(request: HttpRequest) -> HttpResponse:
    """Apply the previewed plan, if everything that it depends on is unchanged; show a kept one."""
    opened = _opened(request)
    if isinstance(opened, HttpResponse):
        return opened
    plan, sealed = opened
    if request.method != "POST":
        return plan_page(request, plan, sealed=sealed)
    rights = rights_of(request)
    reason = _denied(rights, plan)
    if reason:
        return error_page(403, title="You may not apply this plan", next_step=reason)
    if not plan.can_be_applied:
        return plan_page(request, plan, sealed=sealed, status=CONFLICT)
    is_deletion = plan.kind is GroupChangeKind.DELETE_GROUP
    name = shown_names.shown(plan.group)
    # A name that cannot be typed is typed as it is shown.
    if is_deletion and request.POST.get("name", "") not in {plan.group, name}:
        words = f"The typed name is not the name of the group: type {name}"
        return plan_page(request, plan, sealed=sealed, status=400, refused=words)
    try:
        with desk(plan.cluster_id) as at:
            result = apply(at, plan, origin=origin_of(request), now_ms=int(1000 * time.time()))
    except (TooBusy, KafkaFailure) as error:
        return plan_page(
            request,
            plan,
            sealed=sealed,
            status=status_of(error),
            refused=f"Nothing was done. {said(error)}",
        )
    except Error:
        return error_page(
            503,
            title="Nothing was done: the database did not answer",
            next_step="A change is written down before it is made, and that failed. See whether the"
            " database runs, then preview the change again.",
        )
    return _answered(request, plan, result)


def _answered(request: HttpRequest, plan: GroupPlan, result: Result) -> HttpResponse:
    is_clean = not (result.moved or result.failure or result.refused) and result.is_noted
    if not is_clean:
        return _outcome_page(request, plan, result)
    name = shown_names.shown(plan.group)
    if result.is_unchanged:
        messages.success(
            request, f"Group {name} is as the plan wanted it already, so nothing was done."
        )
    else:
        count = f"{plan.changes} partition{'' if plan.changes == 1 else 's'}"
        # The page that follows would show the lag of before as if it was seen just now.
        is_seen = _is_seen(plan)
        done = DONE[plan.kind].format(group=name, count=count)
        messages.success(request, done if is_seen else f"{done} {UNSEEN}")
    return redirect(_after(plan))


def _is_seen(plan: GroupPlan) -> bool:
    if plan.kind is GroupChangeKind.DELETE_GROUP:
        return live.wait_for_deletion(plan.cluster_id, plan.group)
    step = next(each for each in plan.steps if each.before != each.after)
    return live.wait_for_offset(plan.cluster_id, plan.group, step.place, step.after)


def _after(plan: GroupPlan) -> str:
    """Return the link to the group's page, or to the list if the group was deleted."""
    if plan.kind is GroupChangeKind.DELETE_GROUP:
        return f"{reverse('console:groups')}?{urlencode({'cluster': plan.cluster_id})}"
    return group_names.link(plan.cluster_id, plan.group)


def _outcome_page(request: HttpRequest, plan: GroupPlan, result: Result) -> HttpResponse:
    reading = query.group_plan_page(frame(plan.cluster_id, rights_of(request)), plan, sealed="")
    is_done = not (result.moved or result.failure or result.refused)
    status = 200 if is_done else 503 if result.is_unknown else CONFLICT
    context = {
        "page": "groups",
        "reading": reading,
        "data": reading.data,
        "result": result,
        "refusals": [
            (place, f"{why.name}: {why.message}")
            for place, why in islice(result.refused.items(), NAMED_REFUSALS)
        ],
        "refused": len(result.refused),
        "unnamed": max(0, len(result.refused) - NAMED_REFUSALS),
        "changed": plan.changes - len(result.refused),
        "again": _form_address(plan),
    }
    return render(request, "console/group_plan_outcome.html", context, status=status)


def _form_address(plan: GroupPlan) -> str:
    more = {**plan.asked, **({"topic": plan.topic} if plan.topic else {})}
    return group_names.link(plan.cluster_id, plan.group, FORMS[plan.kind], more=more)


def _opened(request: HttpRequest) -> tuple[GroupPlan, str] | HttpResponse:
    sealed = (typed_in(request) or QueryDict()).get("plan", "")
    try:
        return seals.open_seal(sealed, holder=request.user.get_username()), sealed
    except BadSeal as error:
        return error_page(400, title="This plan cannot be applied", next_step=f"{error}.")


def _denied(rights: Rights, plan: GroupPlan) -> str:
    """Return a sentence on the first missing right for a plan; empty if none is missing."""
    cluster = plan.cluster_id
    if reason := decided(rights, RIGHTS[plan.kind], cluster, Kind.GROUP, plan.group):
        return reason
    for topic in dict.fromkeys(step.place.topic for step in plan.steps):
        if reason := decided(rights, Operation.VIEW, cluster, Kind.TOPIC, topic):
            return reason
    return ""


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1


def _file(plan: GroupPlan) -> HttpResponse:
    """Return the offsets of a plan in the CSV format of Kafka's tool."""
    offsets = [(step.place, step.after) for step in plan.steps if step.after is not None]
    answer = HttpResponse(csv_of(offsets), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="plan.csv"'
    answer["Cache-Control"] = "no-store"
    return answer
