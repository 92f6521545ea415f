"""Shows search results: a fragment for the dialog, or a page of its own without a script."""

import time

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.queries import search as query
from gateway.access.requirements import signed_in
from gateway.access.selectors import rights_of


@signed_in
@require_safe
def search(request: HttpRequest) -> HttpResponse:
    asked = request.GET
    reading = query.search(
        asked.get("cluster"), asked.get("q", ""), rights_of(request), now=time.time
    )
    is_fragment = request.headers.get("HX-Request") == "true"
    template = "console/search_hits.html" if is_fragment else "console/search.html"
    context = {"page": "search", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 200
    answer = render(request, template, context, status=status)
    answer["Vary"] = "HX-Request"
    return answer
