"""Writes one record by hand: a form, and the position of the written record."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from console import producing
from console.forms.records import MAX_HEADERS, RecordForm, form_of
from console.forms.typed_bytes import KINDS
from console.kept_forms import keeps_form, typed_in
from console.pages.plans import author_of
from console.queries import produce as query
from console.queries.frame import frame
from console.queries.reading import Reading
from gateway.access import audit
from gateway.access.grants import Resource
from gateway.access.operations import Kind, Operation
from gateway.access.requirements import requires
from gateway.access.selectors import actor_of, rights_of
from gateway.access.turns import TooBusy
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.errors import Kind as FailureKind

BUSY: Final = 429
REFUSED: Final = 400
UNAVAILABLE: Final = 503
# Failures after which the record may be in the log nevertheless.
UNKNOWN: Final = frozenset(
    {"BROKER_NOT_AVAILABLE", "NETWORK_EXCEPTION", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"}
)


def topic_of(request: HttpRequest, named: Mapping[str, Any]) -> Resource:
    """Return the topic of a URL, in the cluster that its page shows."""
    shown = frame(request.GET.get("cluster"), rights_of(request)).shown
    cluster = "" if shown is None else shown.cluster_id
    return Resource(kind=Kind.TOPIC, cluster=cluster, name=named["name"])


@requires(Operation.PRODUCE, resource=topic_of)
@keeps_form()
@require_http_methods(["GET", "HEAD", "POST"])
def produce(request: HttpRequest, name: str) -> HttpResponse:
    reading = query.produce_page(request.GET.get("cluster"), name, rights_of(request))
    page = reading.data
    if page is None or page.frame.shown is None:
        return _shown(request, reading, RecordForm(), status=UNAVAILABLE if page is None else 200)
    if page.topic is None:
        context = {"page": "topics", "reading": reading, "data": page}
        return render(request, "console/topic_missing.html", context, status=404)
    if page.keeps:
        return _shown(request, reading, RecordForm(), status=REFUSED)
    typed = typed_in(request)
    if typed is None:
        begun = query.beginning(page, request.GET.get("again", ""), author_of(request).by.caller)
        return _shown(request, reading, begun.form, problem=begun.problem)
    form = form_of(typed, partitions=page.topic.partitions, max_bytes=page.max_bytes)
    if request.method != "POST":
        return _shown(request, reading, form)
    if form.record is None:
        return _shown(request, reading, form, status=REFUSED)
    return _written(request, reading, page, form)


def _written(
    request: HttpRequest,
    reading: Reading[query.ProducePage],
    page: query.ProducePage,
    form: RecordForm,
) -> HttpResponse:
    assert form.record is not None
    assert page.frame.shown is not None
    cluster = page.frame.shown.cluster_id
    actor, subject = actor_of(request), f"topic {page.name}"
    try:
        at = producing.write(page.bootstrap, page.name, form.record)
    except TooBusy as busy:
        problem = f"Nothing was written: {busy}. Send it again."
        return _shown(request, reading, form, problem=problem, status=BUSY)
    except KafkaFailure as failure:
        audit.record(
            "record.not_produced", actor=actor, subject=subject, cluster=cluster, error=failure.name
        )
        is_unknown = failure.kind is FailureKind.TIMEOUT or failure.name in UNKNOWN
        return _shown(
            request,
            reading,
            form,
            failure=failure,
            is_unknown=is_unknown,
            status=UNAVAILABLE if is_unknown else REFUSED,
        )
    audit.record(
        "record.produced",
        actor=actor,
        subject=subject,
        cluster=cluster,
        partition=str(at.partition),
        offset=str(at.offset),
    )
    messages.success(
        request, f"The record is written: offset {at.offset} of partition {at.partition}."
    )
    place = {"mode": "offset", "partitions": at.partition, "from": at.offset, "limit": 1}
    can_look = page.read.is_allowed
    address = reverse(f"console:{'topic-messages' if can_look else 'produce'}", args=[page.name])
    return redirect(f"{address}?{urlencode({'cluster': cluster} | (place if can_look else {}))}")


def _shown(
    request: HttpRequest,
    reading: Reading[query.ProducePage],
    form: RecordForm,
    *,
    status: int = 200,
    **more: object,
) -> HttpResponse:
    context = {
        "page": "topics",
        "reading": reading,
        "data": reading.data,
        "form": form,
        "kinds": KINDS,
        "max_headers": MAX_HEADERS,
        "patience_s": int(producing.WRITE_S),
        **more,
    }
    return render(request, "console/produce.html", context, status=status)
