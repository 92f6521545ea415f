"""Shows the connectors of a cluster, those in need first, and one with its tasks and log."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe

from connectors import changes, refusals, services
from console.forms.typed_names import check_typed_name
from console.pages.errors import error_page
from console.pages.form_addresses import takes_forms
from console.pages.plans import author_of
from console.queries import connect as list_query
from console.queries import connector as query
from console.queries.connector import Tab
from console.queries.failures import sentence_of, status_of
from console.queries.links import link
from console.queries.reading import Reading
from gateway.access.grants import Resource
from gateway.access.operations import Kind, Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of

TABS: Final = {tab.value: tab for tab in Tab if tab is not Tab.DEAD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One order to a connector: its function, and the message afterwards."""

    run: Callable[[changes.By, str, str], object]
    told: str


VERBS: Final[Mapping[str, Verb]] = {
    "pause": Verb(run=services.pause, told="{name} is being paused: its tasks stay assigned."),
    "resume": Verb(run=services.resume, told="{name} is being resumed."),
    "stop": Verb(run=services.stop, told="{name} is being stopped: its tasks end."),
    "restart": Verb(
        run=lambda by, cluster, name: services.restart(by, cluster, name, include_tasks=True),
        told="{name} and its tasks are being restarted.",
    ),
    "restart-failed": Verb(
        run=lambda by, cluster, name: services.restart(
            by, cluster, name, include_tasks=True, only_failed=True
        ),
        told="The failed parts of {name} are being restarted.",
    ),
}


def connector_asked(request: HttpRequest, parts: Mapping[str, Any]) -> Resource:
    """Return the connector of a form, in the cluster that the form names."""
    cluster = request.POST.get("cluster") or request.GET.get("cluster", "")
    return Resource(kind=Kind.CONNECTOR, cluster=cluster, name=str(parts.get("name", "")))


def page_of_connector(request: HttpRequest, name: str, **_parts: object) -> str:
    return link("connector", request.GET.get("cluster", ""), name)


@requires(Operation.VIEW)
@require_safe
def connectors(request: HttpRequest) -> HttpResponse:
    reading = list_query.connectors(request.GET.get("cluster"), rights_of(request))
    context = {"page": "connectors", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 200
    return render(request, "console/connectors.html", context, status=status)


@requires(Operation.VIEW)
@require_safe
def connector(request: HttpRequest, name: str) -> HttpResponse:
    tab = TABS.get(request.GET.get("tab", ""), Tab.TASKS)
    reading = query.connector(request.GET.get("cluster"), name, tab, rights_of(request))
    return _page(request, f"console/connector_{tab.value}.html", reading)


@requires(Operation.OPERATE_CONNECTORS, resource=connector_asked)
@takes_forms(page_of_connector)
def order(request: HttpRequest, name: str, verb: str) -> HttpResponse:
    """Pause, resume, stop or restart a connector."""
    chosen = VERBS.get(verb)
    if chosen is None:
        return error_page(404)
    return _given(
        request,
        name,
        lambda by, cluster: chosen.run(by, cluster, name),
        chosen.told.format(name=name),
    )


@requires(Operation.OPERATE_CONNECTORS, resource=connector_asked)
@takes_forms(page_of_connector)
def restart_task(request: HttpRequest, name: str, number: int) -> HttpResponse:
    return _given(
        request,
        name,
        lambda by, cluster: services.restart_task(by, cluster, name, number),
        f"Task {number} of {name} restarts.",
    )


@requires(Operation.DELETE_CONNECTORS, resource=connector_asked)
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Show what is deleted with a connector, and delete it once its name was typed."""
    cluster = request.POST.get("cluster") or request.GET.get("cluster", "")
    page = "console/connector_delete.html"
    is_sent = request.method == "POST"
    wrong = check_typed_name(request.POST, name, subject="connector") if is_sent else ""
    if wrong or not is_sent:
        reading = query.connector(cluster, name, Tab.OFFSETS, rights_of(request))
        return _page(request, page, reading, wanted=400 if wrong else 200, wrong=wrong)
    try:
        services.delete(author_of(request).by, cluster, name)
    except refusals.NotServed as error:
        return refused(error, f"{name} is not deleted")
    messages.success(request, f"{name} is deleted. Its topics, and what it wrote, stay.")
    return redirect(f"{reverse('console:connectors')}?{urlencode({'cluster': cluster})}")


def refused(error: refusals.NotServed, title: str) -> HttpResponse:
    """Return the page for a change that was refused."""
    return error_page(status_of(error), title=title, next_step=sentence_of(error))


def _given(
    request: HttpRequest, name: str, give: Callable[[changes.By, str], object], told: str
) -> HttpResponse:
    cluster = request.POST.get("cluster", "")
    try:
        give(author_of(request).by, cluster)
    except refusals.NotServed as error:
        return refused(error, f"{name} stays as it is")
    messages.success(request, told)
    here = reverse("console:connector", args=[name])
    return redirect(f"{here}?{urlencode({'cluster': cluster})}")


def _page(
    request: HttpRequest,
    template: str,
    reading: Reading[query.ConnectorPage],
    *,
    wanted: int = 200,
    **more: object,
) -> HttpResponse:
    data = reading.data
    context = {"page": "connectors", "reading": reading, "data": data, **more}
    if data is not None and data.frame.shown is not None and data.info is None:
        return render(request, "console/connector_missing.html", context, status=404)
    status = 503 if reading.is_failed else wanted
    return render(request, template, context, status=status)
