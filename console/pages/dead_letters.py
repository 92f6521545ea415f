"""Shows dead letters of a connector: causes, list, choose, plan, follow, stop and resume.

`console.plans.redrives` starts a run, from its plan.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from connectors import dead_letters, redrives, refusals
from console.forms import dead_letters as forms
from console.pages.connectors import connector_asked, refused
from console.pages.form_addresses import takes_forms
from console.pages.plans import author_of, show_plan
from console.plans import redrives as adapter
from console.queries import connector as one_query
from console.queries import dead_letters as query
from console.queries.connector import ConnectorPage, Tab
from console.queries.failures import attempt
from console.queries.links import link
from console.queries.reading import Reading
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of
from gateway.kafka.errors import KafkaFailure

BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
UNAVAILABLE: Final = 503


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The connector of a page; `data` holds it if it exists."""

    request: HttpRequest
    reading: Reading[ConnectorPage]
    name: str

    @property
    def data(self) -> ConnectorPage | None:
        return self.reading.data

    @property
    def cluster(self) -> str:
        shown = self.data.frame.shown if self.data else None
        return "" if shown is None else shown.cluster_id

    def page(self, template: str, status: int = 200, **more: object) -> HttpResponse:
        context = {"page": "connectors", "reading": self.reading, "data": self.data, **more}
        return render(self.request, f"console/{template}.html", context, status=status)

    def missing(self) -> HttpResponse | None:
        """Return the page for an unknown connector; None if it exists."""
        if self.data is not None and self.data.info is not None:
            return None
        status = UNAVAILABLE if self.reading.is_failed else NOT_FOUND
        return self.page("connector_missing", status)

    def address(self, view: str) -> str:
        return f"{reverse(f'console:{view}', args=[self.name])}?{_in(self.cluster)}"


def _page_of(view: str) -> Callable[..., str]:
    return lambda request, name, **_: link(view, request.GET.get("cluster", ""), name)


@requires(Operation.VIEW)
@require_safe
def letters(request: HttpRequest, name: str) -> HttpResponse:
    """Show the newest letters, and why each record failed."""
    return _letters(_desk(request, name), forms.filter_of(request.GET))


@requires(Operation.VIEW)
@require_safe
def runs(request: HttpRequest, name: str) -> HttpResponse:
    """Show the runs that send letters again, and the progress of each."""
    desk = _desk(request, name)
    return desk.missing() or desk.page("connector_redrives", runs=query.runs_of(desk.cluster, name))


@requires(Operation.ALTER_CONNECTORS, resource=connector_asked)
@takes_forms(_page_of("dead-letters"))
def plan(request: HttpRequest, name: str) -> HttpResponse:
    """Show what would be sent, and where to, without changing anything."""
    desk = _desk(request, name)
    if missing := desk.missing():
        return missing
    found = forms.filter_of(request.POST)
    try:
        asked = forms.asked_of(request.POST)
    except forms.Unreadable as error:
        return _letters(desk, found, wrong=str(error), status=BAD_REQUEST)

    author = author_of(request)
    made, wrong, status = attempt(lambda: adapter.plan_of(author, desk.cluster, name, asked))
    if made is None:
        return _letters(desk, found, wrong=wrong, status=status)
    return show_plan(request, adapter.KIND, made)


@requires(Operation.ALTER_CONNECTORS, resource=connector_asked)
@takes_forms(_page_of("redrives"))
def stop(request: HttpRequest, name: str, number: int) -> HttpResponse:
    told = f"Run {number} is stopping: the batch in flight is still delivered."
    return _ordered(
        request,
        name,
        lambda cluster: redrives.stop(author_of(request).by, cluster, name, number),
        told,
    )


@requires(Operation.ALTER_CONNECTORS, resource=connector_asked)
@takes_forms(_page_of("redrives"))
def resume(request: HttpRequest, name: str, number: int) -> HttpResponse:
    return _ordered(
        request,
        name,
        lambda cluster: redrives.resume(author_of(request).by, cluster, name, number),
        f"Resumed run {number}.",
    )


def _desk(request: HttpRequest, name: str) -> Desk:
    asked = request.POST.get("cluster") or request.GET.get("cluster")
    reading = one_query.connector(asked, name, Tab.DEAD, rights_of(request))
    return Desk(request=request, reading=reading, name=name)


def _letters(
    desk: Desk, found: forms.Filter, *, wrong: str = "", status: int = 200
) -> HttpResponse:
    if missing := desk.missing():
        return missing

    def ask() -> tuple[dead_letters.Look, dead_letters.Causes | None]:
        asked = (author_of(desk.request).by, desk.cluster, desk.name)
        with query.cluster_of(desk.cluster) as wire:
            look = dead_letters.look(*asked, wire=wire, before=found.before, **found.chosen)
            try:
                return look, dead_letters.causes(*asked, wire=wire)
            except KafkaFailure:
                # Reading the letters used up the time limit of both calls: show them without
                # counts.
                return look, None

    seen, failed, worse = attempt(ask)
    look, causes = seen or (None, None)
    older = ",".join(f"{at}:{end}" for at, end in sorted(look.older.items())) if look else ""
    return desk.page(
        "connector_dead_letters",
        status if wrong else worse,
        look=look,
        rows=() if look is None else query.rows_of(look),
        causes=causes,
        cause_rows=() if causes is None else query.cause_rows_of(causes),
        filter=found,
        stages=query.STAGES,
        wrong=wrong,
        failed=failed,
        older=found.url(before=older) if older else "",
        runs=query.runs_of(desk.cluster, desk.name)[:1],
    )


def _ordered(
    request: HttpRequest, name: str, give: Callable[[str], object], told: str
) -> HttpResponse:
    cluster = request.POST.get("cluster", "")
    try:
        give(cluster)
    except refusals.NotServed as error:
        return refused(error, "The run stays as it is")
    messages.success(request, told)
    return redirect(f"{reverse('console:redrives', args=[name])}?{_in(cluster)}")


def _in(cluster: str) -> str:
    return urlencode({"cluster": cluster})
