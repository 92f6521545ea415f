"""Shows one topic: its messages first, and tabs for partitions, consumers, configs and charts."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.pages import topic_messages as messages
from console.queries import topic as query
from console.queries.topic import Tab
from console.queries.topic_messages import Asked, topic_messages
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of

TABS: Final = {tab.value: tab for tab in Tab}
# A path that users may guess for a new topic; a topic may have this name, too.
NEW: Final = "new"


@requires(Operation.VIEW)
@require_safe
def topic(request: HttpRequest, name: str) -> HttpResponse:
    given = request.GET
    tab = TABS.get(given.get("tab", ""))
    if tab is None:
        landing = topic_messages(given.get("cluster"), name, rights_of(request))
        found = landing.data
        if found is not None and found.head is not None and found.read.is_allowed:
            return messages.shown(request, landing, Asked())
    tab = tab or Tab.PARTITIONS
    page = given.get("page", "")
    number = int(page) if page.isascii() and page.isdigit() and len(page) < 7 else 1
    reading = query.topic_page(given.get("cluster"), name, tab, number, rights_of(request))
    data = reading.data
    is_missing = data is not None and data.frame.shown is not None and data.head is None
    context = {"page": "topics", "reading": reading, "data": data}
    if reading.is_failed or not is_missing:
        status = 503 if reading.is_failed else 200
        return render(request, f"console/topic_{tab.value}.html", context, status=status)
    if name == NEW:
        return redirect(f"{reverse('console:new-topic')}?{request.GET.urlencode()}")
    return render(request, "console/topic_missing.html", context, status=404)
