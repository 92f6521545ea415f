"""The topics of a cluster, filtered by name, a hundred at a time."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.queries import topics as query
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of


@requires(Operation.VIEW)
@require_safe
def topics(request: HttpRequest) -> HttpResponse:
    asked = request.GET
    page = asked.get("page", "1")
    number = int(page) if page.isascii() and page.isdigit() and len(page) < 7 else 1
    reading = query.topics(asked.get("cluster"), asked.get("q", ""), number, rights_of(request))
    context = {"page": "topics", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 200
    return render(request, "console/topics.html", context, status=status)
