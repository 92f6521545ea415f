"""Takes new offsets of a source as JSON, and shows the plan of the change."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from connectors import selectors
from console.forms import connectors as forms
from console.kept_forms import keeps_form, typed_in
from console.pages.connector_forms import BAD_REQUEST, CONFLICT, NOT_FOUND, UNAVAILABLE, form_page
from console.pages.connectors import connector_asked
from console.pages.errors import error_page
from console.pages.plans import author_of, show_plan
from console.plans import offsets as adapter
from console.queries import connector as query
from console.queries.connector import ConnectorPage, Tab
from console.queries.links import link
from console.queries.reading import Reading
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of

STOPPED: Final = "STOPPED"
# Changes that a preview lists; more have to be made with a file on the command line.
MAX_CHANGES: Final = 500
Pairs = Sequence[tuple[forms.Place, forms.Place | None]]


@requires(Operation.ALTER_CONNECTORS, resource=connector_asked)
@keeps_form()
@form_page
def offsets(request: HttpRequest, name: str) -> HttpResponse:
    """Ask for offsets of a stopped source, and preview the change."""
    asked = request.POST.get("cluster") or request.GET.get("cluster")
    reading = query.connector(asked, name, Tab.OFFSETS, rights_of(request))
    data = reading.data
    if data is None or data.info is None:
        context = {"page": "connectors", "reading": reading, "data": data}
        status = UNAVAILABLE if reading.is_failed else NOT_FOUND
        return render(request, "console/connector_missing.html", context, status=status)
    if asked is None and request.method != "POST":
        return redirect(link("connector-offsets", data.info.cluster, name))
    # The right was checked in the named cluster.
    if asked != data.info.cluster:
        raise Http404
    if data.is_sink or data.info.target != STOPPED:
        why = "Set its consumer group back instead: its page has that."
        if not data.is_sink:
            why = "Stop the connector first: running tasks would ignore the change."
        title = f"The offsets of {name} cannot be changed here now"
        return error_page(CONFLICT, title=title, next_step=why)
    return _answer(request, reading, data, data.info.cluster)


def _answer(
    request: HttpRequest, reading: Reading[ConnectorPage], data: ConnectorPage, cluster: str
) -> HttpResponse:
    stored = selectors.source_offsets(cluster, data.name)
    text = (typed_in(request) or QueryDict()).get("offsets", _json_of(stored))

    def page(status: int = 200, **more: object) -> HttpResponse:
        context = {"page": "connectors", "reading": reading, "data": data, "text": text, **more}
        name = "console/connector_offsets_form.html"
        return render(request, name, context, status=status)

    if request.method != "POST":
        return page()
    is_reset = request.POST.get("do", "") == "reset"
    try:
        wanted: Pairs = (
            [(dict(place), None) for place, _ in stored] if is_reset else forms.offsets_from(text)
        )
    except forms.Unreadable as error:
        return page(BAD_REQUEST, wrong=str(error))
    changes = _changes(stored, wanted)
    if not changes:
        return page(BAD_REQUEST, wrong="Nothing was changed here: change an offset, or cancel.")
    if len(changes) > MAX_CHANGES and not is_reset:
        wrong = f"{len(changes)} offsets change, and a preview shows {MAX_CHANGES}: use"
        return page(BAD_REQUEST, wrong=f"{wrong} `./samsa connectors offsets -f FILE`.")
    plan = adapter.OffsetsPlan(
        cluster=cluster,
        name=data.name,
        made_at_ms=author_of(request).now_ms,
        text="" if is_reset else text,
        changes=tuple(changes[:MAX_CHANGES]),
        count=len(changes),
        stored=adapter.digest_of(stored),
    )
    return show_plan(request, adapter.KIND, plan)


def _changes(
    stored: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], wanted: Pairs
) -> list[tuple[str, str | None, str | None]]:
    """Return places whose offset changes, as JSON: before and after; None for no offset."""
    before = {_spelled(place): _spelled(offset) for place, offset in stored}
    after = {
        _spelled(place): None if offset is None else _spelled(offset) for place, offset in wanted
    }
    return [
        (place, before.get(place), offset)
        for place, offset in after.items()
        if before.get(place) != offset
    ]


def _spelled(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _json_of(stored: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> str:
    listed = [{"partition": place, "offset": offset} for place, offset in stored]
    return json.dumps({"offsets": listed}, indent=2, ensure_ascii=False)
