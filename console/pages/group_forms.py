"""Shows forms about changes of groups: each makes a plan, which is then previewed.

Changes nothing. Names of groups may have any bytes, so they are in the query.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from console.forms.groups import MAX_GROUP_CHARS, MODES, UNITS, ResetForm
from console.group_changes.desk import Desk, desk
from console.group_changes.planning import (
    Around,
    NoPlan,
    plan_deletion,
    plan_offsets_deletion,
    plan_reset,
)
from console.group_changes.plans import GroupPlan
from console.kept_forms import keeps_form, typed_in
from console.pages.errors import error_page
from console.pages.plans import author_of, show_plan
from console.plans import groups
from console.plans.kind import Author
from console.preferences import preferences_of
from console.queries.failures import sentence_of, status_of
from console.queries.frame import Frame, frame
from console.queries.group_forms import group_form_page
from console.queries.reading import Reading, State, moment
from gateway.access.operations import Kind, Operation
from gateway.access.requirements import requires
from gateway.access.turns import TooBusy
from gateway.kafka.errors import KafkaFailure

form_page = require_http_methods(["GET", "HEAD", "POST"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The user of a form, and the group and cluster that it is about."""

    frame: Frame
    cluster_id: str
    group: str
    author: Author

    def hides_topic(self, topic: str) -> str:
        """Return why the user may not view a topic; empty if they may."""
        return self.author.lacks(Operation.VIEW, self.cluster_id, Kind.TOPIC, topic)

    def hides(self, group: str) -> str:
        """Return why the user may not read another group; empty if they may, or none is named."""
        if not group:
            return ""
        return self.author.lacks(Operation.VIEW, self.cluster_id, Kind.GROUP, group)

    def around(self) -> Around:
        return Around(
            cluster_id=self.cluster_id,
            group=self.group,
            may_view=lambda topic: not self.hides_topic(topic),
            now_ms=self.author.now_ms,
        )


@requires(Operation.VIEW)
@keeps_form()
@form_page
def reset_offsets(request: HttpRequest) -> HttpResponse:
    """Ask for new positions of a group, and preview the change."""
    asking = _asking(request)
    if isinstance(asking, HttpResponse):
        return asking
    preferences = preferences_of(request)
    form = ResetForm(
        typed_in(request),
        request.FILES if request.method == "POST" else None,
        group=asking.group,
        now=timezone.now(),
        zone=preferences.zone,
        zone_name=preferences.zone_name,
        before=request.GET.dict(),
    )
    if request.method != "POST":
        return _reset_form(request, asking, form)
    if not form.is_valid() or form.asked is None:
        return _reset_form(request, asking, form, status=400)
    if reason := asking.hides(form.asked.source):
        # Its offsets would be shown.
        form.add_error("source", reason)
        return _reset_form(request, asking, form, status=403)
    asked, told = form.asked, form.told()
    return _previewed(
        request,
        asking,
        lambda at: replace(plan_reset(at, asking.around(), asked), asked=told),
        failed=lambda status, **why: _reset_form(request, asking, form, status=status, **why),
    )


@requires(Operation.VIEW)
@require_safe
def delete_offsets(request: HttpRequest) -> HttpResponse:
    """Preview the deletion of a group's offsets of a topic; ask for one if none is named."""
    asking = _asking(request)
    if isinstance(asking, HttpResponse):
        return asking
    topic = request.GET.get("topic", "").strip()

    def form(status: int = 200, **why: object) -> HttpResponse:
        context = {**_context(asking, Operation.RESET_GROUPS), "topic": topic, **why}
        return render(request, "console/group_delete_offsets.html", context, status=status)

    if not topic:
        return form()
    if reason := asking.hides_topic(topic):
        return error_page(403, title="You may not see this plan", next_step=reason)
    return _previewed(
        request,
        asking,
        lambda at: plan_offsets_deletion(at, asking.around(), topic),
        failed=form,
    )


@requires(Operation.VIEW)
@require_safe
def delete_group(request: HttpRequest) -> HttpResponse:
    """Preview the deletion of a group."""
    asking = _asking(request)
    if isinstance(asking, HttpResponse):
        return asking

    def failed(status: int, **why: object) -> HttpResponse:
        context = {**_context(asking, Operation.DELETE_GROUPS), **why}
        return render(request, "console/group_unplanned.html", context, status=status)

    return _previewed(request, asking, lambda at: plan_deletion(at, asking.around()), failed=failed)


def _previewed(
    request: HttpRequest,
    asking: Asking,
    make: Callable[[Desk], GroupPlan],
    *,
    failed: Callable[..., HttpResponse],
) -> HttpResponse:
    """Make a plan and show it; show the reason on the form if that is impossible."""
    try:
        with desk(asking.cluster_id) as at:
            plan = make(at)
    except NoPlan as error:
        return failed(status=400, unplanned=str(error))
    except (TooBusy, KafkaFailure) as error:
        unplanned = sentence_of(error, faster=groups.FASTER)
        return failed(status=status_of(error), unplanned=unplanned, is_failure=True)
    return show_plan(request, groups.KIND, plan)


def _reset_form(
    request: HttpRequest, asking: Asking, form: ResetForm, *, status: int = 200, **why: object
) -> HttpResponse:
    mode = form["mode"].value()
    context = {
        **_context(asking, Operation.RESET_GROUPS),
        "form": form,
        "modes": [(key, *words) for key, words in MODES.items()],
        "mode": mode if mode in MODES else "earliest",
        "units": list(UNITS),
        "chosen": form.chosen(),
        # The element with the error of the time.
        "wrong_time": "refused" if {"time", "moment"} & form.errors.keys() else "",
        **why,
    }
    return render(request, "console/group_reset.html", context, status=status)


def _context(asking: Asking, operation: Operation) -> dict[str, Any]:
    data = group_form_page(asking.frame, asking.author.rights, asking.group, operation)
    reading = Reading(state=State.LOADED, data=data, read_at=moment(time.time()))
    return {"page": "groups", "reading": reading, "data": data}


def _asking(request: HttpRequest) -> Asking | HttpResponse:
    """Return what the URL names; an error page if it is not available."""
    author, wanted = author_of(request), request.GET.get("cluster")
    around = frame(wanted, author.rights)
    # Never change a group in another cluster than the named one.
    if around.shown is None or (wanted and wanted != around.shown.cluster_id):
        raise Http404
    group = request.GET.get("name", "")
    if not group or "\0" in group or len(group) > MAX_GROUP_CHARS:
        return error_page(
            400,
            title="No group is named",
            next_step=f"Its name has 1 to {MAX_GROUP_CHARS} characters and no NUL. Choose the group"
            " from the list of groups.",
        )
    cluster_id = around.shown.cluster_id
    if reason := author.lacks(Operation.VIEW, cluster_id, Kind.GROUP, group):
        return error_page(403, title="You may not see this group", next_step=reason)
    return Asking(frame=around, cluster_id=cluster_id, group=group, author=author)
