"""The interfaces for programs, described so that they can be tried from the page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.queries import api as query
from gateway.access.requirements import signed_in
from gateway.access.selectors import rights_of


@signed_in
@require_safe
def api(request: HttpRequest) -> HttpResponse:
    reading = query.api(request.GET.get("cluster"), rights_of(request))
    context = {"page": "api", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 200
    page = render(request, "console/api.html", context, status=status)
    # The style sheet of the viewer holds its arrows and ticks as images in its own text.
    page["Content-Security-Policy"] = "data images"
    return page
