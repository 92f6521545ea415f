"""The sign of life that the supervisor waits for: no login, no database, no session."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe


@never_cache
@require_safe
def health(_request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})
