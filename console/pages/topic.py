"""Shows one topic: a head with charts, and tabs for partitions, consumers and configs."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.queries import topic as query
from console.queries.topic import Tab
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
    tab = TABS.get(given.get("tab", ""), Tab.PARTITIONS)
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
