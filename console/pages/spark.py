"""Shows Spark: its session, the connectors that run on it, and how to use an own one."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.queries import spark as query
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of


@requires(Operation.VIEW)
@require_safe
def spark(request: HttpRequest) -> HttpResponse:
    reading = query.spark(request.GET.get("cluster"), rights_of(request))
    context = {"page": "spark", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 200
    return render(request, "console/spark.html", context, status=status)
