"""Shows the messages of a topic: a form, and the rows that the browser's module streams in."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.queries import topic_messages as query
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of


# On any topic: the query checks which one, once it has found the cluster.
@requires(Operation.VIEW)
@require_safe
def topic_messages(request: HttpRequest, name: str) -> HttpResponse:
    asked = query.asked_of(request.GET.dict())
    reading = query.topic_messages(request.GET.get("cluster"), name, asked, rights_of(request))
    data = reading.data
    if data is not None and data.frame.shown is not None and data.topic is None:
        context = {"page": "topics", "reading": reading, "data": data}
        return render(request, "console/topic_missing.html", context, status=404)
    context = {
        "page": "topics",
        "reading": reading,
        "data": data,
        "modes": query.MODES,
        "limits": query.LIMITS,
        "forms": query.FORMS,
        "exports": query.EXPORTS,
        "filters": query.FILTERS,
    }
    can_read = data is None or data.read.is_allowed
    status = 503 if reading.is_failed else 200 if can_read else 403
    return render(request, "console/topic_messages.html", context, status=status)
