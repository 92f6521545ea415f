"""Starts, stops and restarts a broker, and reads its log, by orders to the agent of its host."""

import time
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from brokers.controlplane import services
from brokers.controlplane.orders import Verb
from brokers.protocol.errors import ErrorCode, KafkaError
from console.origins import origin_of
from console.pages.brokers import MAX_BROKER_ID, cluster_asked, is_missing, number_in
from console.pages.errors import error_page
from console.pages.form_addresses import takes_forms
from console.pages.plans import author_of, error_page_of, show_plan
from console.plans import orders
from console.plans.kind import CannotPlan
from console.queries import broker_log
from gateway.access.operations import Operation
from gateway.access.requirements import requires

START, STOP, RESTART = Verb.START, Verb.STOP, Verb.RESTART
CONFLICT: Final = 409
MAX_ORDER: Final = 2**63 - 1  # limited by the database


@requires(Operation.MANAGE_BROKERS, resource=cluster_asked)
@require_safe
def ask(request: HttpRequest, number: int, verb: Verb) -> HttpResponse:
    """Show the consequences of an order, which is given once they were confirmed."""
    asked = request.GET.get("cluster", "")
    if number > MAX_BROKER_ID or (asked and is_missing(asked, number)):
        return error_page(404)
    try:
        plan = orders.plan_of(author_of(request), asked, number, verb)
    except CannotPlan as error:
        return error_page_of(error)
    return show_plan(request, orders.KIND, plan)


@requires(Operation.MANAGE_BROKERS, resource=cluster_asked)
@takes_forms(
    lambda request, number: _page_of(number, cluster=request.GET.get("cluster", ""), tab="log")
)
def ask_log(request: HttpRequest, number: int) -> HttpResponse:
    """Order lines of a log, and answer with the part of the page that waits for them."""
    given = request.POST
    cluster_id, cursor = given.get("cluster", ""), given.get("cursor", "")
    if is_missing(cluster_id, number):
        return error_page(404)
    # Without its script, a page links to the lines instead.
    is_part = "HX-Request" in request.headers
    try:
        order = services.ask_order(
            cluster_id=cluster_id,
            broker_id=number,
            broker_epoch=0,
            verb=Verb.LOG,
            origin=origin_of(request),
            now_ms=int(1000 * time.time()),
            cursor=cursor,
        )
    except KafkaError as error:
        if not is_part:
            return _refused(error, f"The log of broker {number} is not available")
        part = broker_log.LogPart(number=number, order=0, round=0, failure=error.message)
        return _show(request, part, cluster_id)
    if not is_part:
        return redirect(_page_of(number, cluster=cluster_id, tab="log", log=str(order)))
    return _show(request, _part(request, cluster_id, number, order), cluster_id)


@requires(Operation.MANAGE_BROKERS, resource=cluster_asked, is_activity=False)
@require_safe
def log_part(request: HttpRequest, number: int, order: int) -> HttpResponse:
    """Show what a log order has returned so far."""
    cluster_id = request.GET.get("cluster", "")
    if number > MAX_BROKER_ID or order > MAX_ORDER:
        return error_page(404)
    if "HX-Request" not in request.headers:
        return redirect(_page_of(number, cluster=cluster_id, tab="log", log=str(order)))
    return _show(request, _part(request, cluster_id, number, order), cluster_id)


def _part(
    request: HttpRequest, cluster_id: str, number: int, order: int
) -> broker_log.LogPart | None:
    given = request.POST if request.method == "POST" else request.GET
    return broker_log.log_part(
        cluster_id,
        number,
        order,
        round_number=number_in(given.get("round", "0")),
        follows=given.get("follow") == "1",
    )


def _show(request: HttpRequest, part: broker_log.LogPart | None, cluster_id: str) -> HttpResponse:
    if part is None:
        return error_page(404)
    context = {"part": part, "cluster_id": cluster_id}
    return render(request, "console/broker_log.html", context)


def _refused(error: KafkaError, title: str) -> HttpResponse:
    status = 404 if error.code is ErrorCode.BROKER_NOT_AVAILABLE else CONFLICT
    return error_page(status, title=title, next_step=f"{error.message}.")


def _page_of(number: int, **query: str) -> str:
    return f"{reverse('console:broker', args=[number])}?{urlencode(query)}"
