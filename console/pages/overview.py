"""The first page: the cluster, its brokers, and what needs attention."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.queries import overview as query


@require_safe
@login_required
def overview(request: HttpRequest) -> HttpResponse:
    reading = query.overview(request.GET.get("cluster"))
    context = {"page": "overview", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 200
    return render(request, "console/overview.html", context, status=status)
