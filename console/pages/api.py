"""Shows the programmatic interfaces, with a viewer that can call them."""

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
    # The viewer's style sheet embeds its arrows and ticks as images.
    page["Content-Security-Policy"] = "data images"
    return page
