"""Shows the brokers of a cluster, and one broker with its tabs."""

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from brokers.cluster import broker_configs
from brokers.cluster.broker_configs import CLUSTER_WIDE
from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import AlterConfigs, ConfigEdit, ConfigOperation
from brokers.controlplane import selectors
from brokers.quantities import BadQuantity
from console.kept_forms import keeps_form, typed_in
from console.pages.errors import error_page
from console.pages.form_addresses import takes_forms
from console.pages.plans import plan_changes
from console.queries import broker as one
from console.queries import brokers as query
from console.queries.links import link
from gateway.access.grants import Resource
from gateway.access.operations import Kind, Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of

# The longest key or value of a valid broker config.
MAX_TEXT: Final = 32_768
# Characters of a value that an error repeats.
SHOWN: Final = 60
# No epoch or order number has more digits.
MAX_DIGITS: Final = 18
MAX_BROKER_ID: Final = 2**31 - 1  # as in the protocol


def number_in(text: str) -> int:
    """Return a number from a form or a URL; 0 if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else 0


def is_missing(cluster_id: str, number: int) -> bool:
    """Tell whether the cluster does not exist, or the broker id is impossible."""
    return number > MAX_BROKER_ID or selectors.cluster(cluster_id=cluster_id) is None


def cluster_asked(request: HttpRequest, _arguments: Mapping[str, Any]) -> Resource:
    """Return the cluster that a request names; without one, no user has a right on it."""
    asked = request.POST if request.method == "POST" else request.GET
    return Resource(kind=Kind.CLUSTER, cluster=asked.get("cluster", "")[: one.MAX_CLUSTER_CHARS])


def _configs_of(request: HttpRequest, number: int) -> str:
    return link("broker", request.GET.get("cluster", ""), number, tab="configs")


@requires(Operation.VIEW)
@require_safe
def brokers(request: HttpRequest) -> HttpResponse:
    asked = request.GET
    reading = query.brokers(asked.get("cluster"), asked.get("sort", ""), rights_of(request))
    context = {"page": "brokers", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 200
    return render(request, "console/brokers.html", context, status=status)


@requires(Operation.VIEW)
@require_safe
def broker(request: HttpRequest, number: int) -> HttpResponse:
    given = request.GET
    asked = one.Asked(
        tab=given.get("tab", ""),
        key=given.get("key", "")[:MAX_TEXT],
        log=number_in(given.get("log", "")),
        asks_broker=given.get("ask") == "1",
    )
    return _shown(request, given.get("cluster"), number, asked)


def _shown(
    request: HttpRequest,
    cluster_id: str | None,
    number: int,
    asked: one.Asked,
    typed: QueryDict | None = None,
    *,
    wrong: str = "",
) -> HttpResponse:
    reading = one.broker(cluster_id, number, asked, rights_of(request))
    context = {"page": "brokers", "reading": reading, "data": reading.data, "typed": typed}
    status = 503 if reading.is_failed else 404 if reading.is_empty else 400 if wrong else 200
    context["wrong"] = wrong
    return render(request, "console/broker.html", context, status=status)


@requires(Operation.VIEW, resource=cluster_asked, is_activity=False)
@require_safe
def order(request: HttpRequest, number: int) -> HttpResponse:
    """Show the progress of the newest order: a part of the broker's page, which polls it."""
    cluster_id = request.GET.get("cluster", "")
    if is_missing(cluster_id, number):
        return error_page(404)
    if "HX-Request" not in request.headers:
        return redirect(link("broker", cluster_id, number))
    context = {"order": one.order_view(cluster_id, number), "cluster_id": cluster_id}
    return render(request, "console/broker_order.html", context)


@requires(Operation.ALTER_CONFIGS, resource=cluster_asked)
@keeps_form()
@takes_forms(_configs_of)
def edit(request: HttpRequest, number: int) -> HttpResponseBase:
    """Preview a change of one dynamic config, of this broker or of all."""
    given = typed_in(request) or QueryDict()
    if is_missing(given.get("cluster", ""), number):
        return error_page(404)
    if request.method != "POST":
        asked = one.Asked(tab="configs", key=given.get("key", "")[:MAX_TEXT])
        return _shown(request, given.get("cluster", ""), number, asked, given)
    key, value = given.get("key", "").strip(), given.get("value", "")
    if not key or max(len(key), len(value)) > MAX_TEXT:
        return error_page(
            400,
            title="No config is named" if not key else "The key or value is too long",
            next_step=f"Choose a config, and give at most {MAX_TEXT} characters.",
        )
    is_unset = given.get("do") == "unset"
    row = broker_configs.ROWS.get(key)
    try:
        value = value if row is None or is_unset else row.plain(value)
    except BadQuantity as error:
        asked = one.Asked(tab="configs", key=key)
        wrong = f"{key}: “{value[:SHOWN]}” {error}."
        return _shown(request, given.get("cluster", ""), number, asked, given, wrong=wrong)
    change = ConfigEdit(
        key=key,
        operation=ConfigOperation.DELETE if is_unset else ConfigOperation.SET,
        value=None if is_unset else value,
    )
    action = AlterConfigs(
        resource_type=ResourceType.BROKER,
        # A cluster-wide config cannot be set for one broker; the plan says which one it is.
        name="" if given.get("scope") == "all" or key in CLUSTER_WIDE else str(number),
        edits=(change,),
    )
    return plan_changes(request, given.get("cluster", ""), [action])
