"""Shows the messages of a topic: a form, and the rows that the browser's module streams in."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from console.preferences import preferences_of
from console.queries import topic_messages as query
from console.queries.reading import Reading
from console.queries.topic_messages import Asked, TopicMessages
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of


# On any topic: the query checks which one, once it has found the cluster.
@requires(Operation.VIEW)
@require_safe
def topic_messages(request: HttpRequest, name: str) -> HttpResponse:
    given, cluster_id = request.GET.dict(), request.GET.get("cluster")
    asked = query.asked_of(given, zone=preferences_of(request).zone, now=timezone.now())
    if not asked.problem and query.is_bound_to_reader(given, asked):
        return redirect(query.address_of(name, cluster_id, asked))
    return shown(request, query.topic_messages(cluster_id, name, rights_of(request)), asked)


def shown(request: HttpRequest, reading: Reading[TopicMessages], asked: Asked) -> HttpResponse:
    """Answer with the page of a question."""
    data, zone, now = reading.data, preferences_of(request).zone, timezone.now()
    if data is not None and data.frame.shown is not None and data.head is None:
        context = {"page": "topics", "reading": reading, "data": data}
        return render(request, "console/topic_missing.html", context, status=404)
    stream = () if data is None else query.stream_of(data, asked)
    context = {
        "page": "topics",
        "reading": reading,
        "data": data,
        "asked": asked,
        "stream": urlencode(stream),
        # The limit of a file can be larger.
        "exported": [(field, value) for field, value in stream if field != "limit"],
        "since": query.typed(asked.since, asked, zone=zone, now=now),
        "until": query.typed(asked.until, asked, zone=zone, now=now),
        "modes": query.MODES,
        "presets": query.PRESETS,
        "limits": query.LIMITS,
        "forms": query.FORMS,
        "exports": query.EXPORTS,
        "filters": query.FILTERS,
    }
    can_read = data is None or data.read.is_allowed
    status = 503 if reading.is_failed else 403 if not can_read else 400 if asked.problem else 200
    return render(request, "console/topic_messages.html", context, status=status)
