"""Shows plans and applies them: the only way in which a page makes a change that has a preview.

A form makes a plan and returns `show_plan`. Exactly what was shown is applied when its seal is
returned. Rights are checked both times, by the adapter of the kind of plan.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from brokers.cluster.proposals import Action
from connectors.changes import By
from console.forms.typed_names import check_typed_name
from console.group_changes.plans import FILE_NAME
from console.kept_forms import keeps_form, typed_in
from console.origins import origin_of
from console.pages.errors import error_page
from console.pages.form_addresses import takes_forms
from console.plans import metadata
from console.plans.kind import Author, CannotPlan, Kind, NotApplied, T
from console.plans.kinds import KINDS
from console.plans.previews import CONFLICT, Outcome
from console.queries.reading import Reading, State
from gateway.access import seals
from gateway.access.callers import Caller, CallerKind
from gateway.access.requirements import signed_in
from gateway.access.seals import BadSeal
from gateway.access.selectors import rights_of
from gateway.kafka.shown_names import shown

BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403
# The most digits of the number of a page.
MAX_DIGITS: Final = 8


def author_of(request: HttpRequest) -> Author:
    rights, origin = rights_of(request), origin_of(request)
    caller = Caller(kind=CallerKind.SESSION, name=request.user.get_username(), rights=rights)
    return Author(
        rights=rights,
        by=By(caller=caller, address=origin.address),
        origin=origin,
        now_ms=int(1000 * time.time()),
        site=request.build_absolute_uri("/").rstrip("/"),
    )


def show_plan(
    request: HttpRequest,
    kind: Kind[T],
    plan: T,
    *,
    number: int = 1,
    wrong: str = "",
    status: int = 200,
    sealed: str = "",
) -> HttpResponse:
    """Show a plan before it is applied, with a button for users who have the rights.

    A plan that was shown before keeps its seal, and with it the time until which it is valid.
    """
    author = author_of(request)
    preview = kind.preview(author, plan, number)
    try:
        sealed = sealed or seals.seal(kind.name, plan, holder=author.holder)
    except BadSeal as error:
        return error_page(BAD_REQUEST, title="This plan cannot be sealed", next_step=f"{error}.")
    typed = kind.confirms(plan)
    context = {
        "page": preview.section,
        "reading": Reading(state=State.LOADED, data=preview, read_at=preview.made_at),
        "data": preview,
        "can_apply": kind.can_apply(plan),
        "denied": kind.deny(author, plan),
        "confirm": shown(typed) if typed else "",
        "sealed": sealed,
        "wrong": wrong,
    }
    return render(request, "console/plan.html", context, status=status)


def plan_changes(
    request: HttpRequest, cluster_id: str, actions: Sequence[Action], *, use: Sequence[str] = ()
) -> HttpResponse:
    """Plan changes of topics and configs, and show the plan."""
    try:
        plan = metadata.plan_of(author_of(request), cluster_id, actions, use=use)
    except CannotPlan as error:
        return error_page_of(error)
    return show_plan(request, metadata.KIND, plan)


def opened_plan(request: HttpRequest, kind: Kind[T]) -> T:
    """Return the plan of a form that was opened from the page of a plan. Raises CannotPlan."""
    _, plan = _opened(request, {kind.name: kind})
    assert isinstance(plan, kind.plan), "seals check types"
    return plan


def error_page_of(error: CannotPlan) -> HttpResponse:
    return error_page(error.status, title=error.title, next_step=error.next_step)


def _overview(_request: HttpRequest) -> str:
    return reverse("console:overview")


@signed_in
@keeps_form()
@takes_forms(_overview)
def show(request: HttpRequest) -> HttpResponse:
    """Show another page of a plan, or send it as a file."""
    return _answer(request, _shown)


@signed_in
@keeps_form()
@takes_forms(_overview)
def preview_again(request: HttpRequest) -> HttpResponse:
    """Make the same plan again from the present state, or lead to the form that does."""
    return _answer(request, _planned_again)


@signed_in
@keeps_form()
@takes_forms(_overview)
def apply(request: HttpRequest) -> HttpResponse:
    """Apply the plan that was shown; show one that was kept."""
    return _answer(request, _applied if request.method == "POST" else _shown)


def _answer(
    request: HttpRequest, answer: Callable[[HttpRequest, Kind[Any], Any], HttpResponse]
) -> HttpResponse:
    """Answer for the plan of a seal."""
    try:
        kind, plan = _opened(request, KINDS)
        return _answered(request, kind, plan, answer)
    except CannotPlan as error:
        return error_page_of(error)


def _answered(
    request: HttpRequest,
    kind: Kind[T],
    plan: T,
    answer: Callable[[HttpRequest, Kind[T], T], HttpResponse],
) -> HttpResponse:
    try:
        return answer(request, kind, plan)
    except NotApplied as error:
        return show_plan(
            request, kind, plan, wrong=str(error), status=error.status, sealed=_seal_in(request)
        )


def _opened(request: HttpRequest, kinds: Mapping[str, Kind[Any]]) -> tuple[Kind[Any], Any]:
    """Return the plan of the form's seal, which is of one of these kinds. Raises CannotPlan."""
    types = {name: kind.plan for name, kind in kinds.items()}
    holder = author_of(request).holder
    try:
        name, plan = seals.open_seal(_seal_in(request), holder=holder, types=types)
    except BadSeal as error:
        raise CannotPlan("This plan has expired", f"{error}.") from error
    return kinds[name], plan


def _seal_in(request: HttpRequest) -> str:
    return str((typed_in(request) or QueryDict()).get("plan", ""))


def _shown(request: HttpRequest, kind: Kind[T], plan: T) -> HttpResponse:
    if request.POST.get("form") == "csv":
        return _file(kind.file(plan))
    number = _number(request.POST.get("page", ""))
    return show_plan(request, kind, plan, number=number, sealed=_seal_in(request))


def _planned_again(request: HttpRequest, kind: Kind[T], plan: T) -> HttpResponse:
    again = kind.again(author_of(request), plan)
    return redirect(again) if isinstance(again, str) else show_plan(request, kind, again)


def _applied(request: HttpRequest, kind: Kind[T], plan: T) -> HttpResponse:
    author = author_of(request)
    if reason := kind.deny(author, plan):
        return error_page(FORBIDDEN, title="You may not apply this plan", next_step=reason)
    if not kind.can_apply(plan):
        return show_plan(request, kind, plan, status=CONFLICT, sealed=_seal_in(request))
    name = kind.confirms(plan)
    if name and (wrong := check_typed_name(request.POST, name, subject=kind.subject)):
        raise NotApplied(wrong, status=BAD_REQUEST)
    outcome = kind.apply(author, plan)
    if not outcome.address:
        return _outcome_page(request, kind, plan, outcome)
    if outcome.done:
        messages.success(request, outcome.done)
    return redirect(outcome.address)


def _outcome_page(request: HttpRequest, kind: Kind[T], plan: T, outcome: Outcome) -> HttpResponse:
    author = author_of(request)
    preview = kind.preview(author, plan, 1)
    context = {
        "page": preview.section,
        "reading": Reading(state=State.LOADED, data=preview, read_at=preview.made_at),
        "data": preview,
        "outcome": outcome,
        "sealed": _seal_in(request),
    }
    return render(request, "console/plan_outcome.html", context, status=outcome.status)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else 1


def _file(text: str) -> HttpResponse:
    answer = HttpResponse(text, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{FILE_NAME}"'
    answer["Cache-Control"] = "no-store"
    return answer
