"""Shows the recent traffic of programs: a user's own calls, or all for those who govern."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.queries import traffic as query
from gateway.access.requirements import signed_in
from gateway.access.selectors import rights_of


@signed_in
@require_safe
def traffic(request: HttpRequest) -> HttpResponse:
    assert request.user.pk is not None, "the gate lets in who is signed in"
    asking = query.Asking(
        user_id=request.user.pk,
        user_name=request.user.get_username(),
        rights=rights_of(request),
    )
    reading = query.traffic(request.GET.get("cluster"), asking)
    is_failed = reading.data is None or bool(reading.data.failure)
    context = {"page": "traffic", "reading": reading, "data": reading.data}
    return render(request, "console/traffic.html", context, status=503 if is_failed else 200)
