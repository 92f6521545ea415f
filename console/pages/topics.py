"""Shows the topics of a cluster: filtered, sorted and counted, a hundred at a time."""

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
    given = request.GET
    asked = query.asked_of(
        contains=given.get("q", ""),
        facets=given.getlist("facet"),
        sort=given.get("sort", ""),
        page=given.get("page", ""),
    )
    reading = query.topics(given.get("cluster"), asked, rights_of(request))
    context = {"page": "topics", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 200
    return render(request, "console/topics.html", context, status=status)
