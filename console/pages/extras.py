"""Shows optional packages of connectors, with the button that installs them."""

import time

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from brokers.cluster.origins import Via
from brokers.controlplane import services
from brokers.controlplane.services import AccessChange, ExtraChangeKind
from console.origins import origin_of
from console.pages.brokers import cluster_asked, is_missing
from console.pages.form_addresses import takes_forms
from console.queries import extras as query
from console.queries.links import link
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of


@requires(Operation.MANAGE_BROKERS)
@require_safe
def extras(request: HttpRequest) -> HttpResponse:
    return _page(request, request.GET.get("cluster"))


@requires(Operation.MANAGE_BROKERS, resource=cluster_asked)
@takes_forms(lambda request, **_: link("extras", request.GET.get("cluster", "")))
def install_extra(request: HttpRequest, name: str) -> HttpResponse:
    """Record the user in the audit, then ask the supervisor of this home to install an extra."""
    cluster_id = request.POST.get("cluster", "")
    if name not in query.EXTRAS or is_missing(cluster_id, 0):
        raise Http404
    reading = query.extras(cluster_id, rights_of(request))
    if reading.data is None or not reading.data.can_install:
        refused = (
            "no supervisor of this home installs packages: run ./samsa extras install "
            f"{name} on each machine whose workers need it"
        )
        return _page(request, cluster_id, refused=refused, status=409)
    if reading.data.is_busy:
        refused = "an installation is under way already: wait for its end"
        return _page(request, cluster_id, refused=refused, status=409)
    services.note_access_change(
        cluster_id=cluster_id,
        change=AccessChange(
            kind=ExtraChangeKind.INSTALL_EXTRA,
            subject="extra",
            name=name,
            before={},
            after={},
            origin=origin_of(request),
            via=Via.BROWSER,
            made_at_ms=int(1000 * time.time()),
        ),
    )
    try:
        query.ask_for(name)
    except OSError as error:
        refused = f"nothing was asked for: {error.strerror or error}"
        return _page(request, cluster_id, refused=refused, status=503)
    return redirect(link("extras", cluster_id))


def _page(
    request: HttpRequest, cluster_id: str | None, *, refused: str = "", status: int = 200
) -> HttpResponse:
    reading = query.extras(cluster_id, rights_of(request))
    context = {
        "page": "connectors",
        "reading": reading,
        "data": reading.data,
        "refused": refused,
    }
    status = 503 if reading.is_failed else status
    return render(request, "console/extras.html", context, status=status)
