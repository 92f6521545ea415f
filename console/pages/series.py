"""Answers with the samples of a chart as JSON; a refusal is a sentence in it."""

import time

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from console.monitoring.selectors import CollectorFailed, NotThere
from console.queries import series as query
from gateway.access import audit
from gateway.access.grants import decide
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import actor_of, rights_of


# A chart polls automatically while its page is open.
@requires(Operation.VIEW, is_activity=False)
@require_safe
def series(request: HttpRequest) -> JsonResponse:
    try:
        asked = query.asked_of(request.GET.dict())
    except query.BadQuestion as error:
        return _refusal(400, str(error))
    # The required right depends on the kind, and a script cannot read an error page.
    for resource in query.resources(asked):
        decision = decide(rights_of(request), Operation.VIEW, resource)
        if not decision.is_allowed:
            audit.record(
                "access.refused",
                actor=actor_of(request),
                subject=request.path,
                reason=decision.reason,
            )
            return _refusal(403, decision.reason)
    try:
        return JsonResponse(query.series(asked, now_s=int(time.time())))
    except NotThere as error:
        return _refusal(404, str(error))
    except CollectorFailed as error:
        return _refusal(503, str(error))


def _refusal(status: int, sentence: str) -> JsonResponse:
    return JsonResponse({"error": sentence}, status=status)
