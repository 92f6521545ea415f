"""Shows the first page: the cluster, its brokers, and what needs attention."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.queries import overview as query
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of


@requires(Operation.VIEW)
@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    reading = query.overview(request.GET.get("cluster"), rights_of(request))
    context = {"page": "overview", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 200
    return render(request, "console/overview.html", context, status=status)
