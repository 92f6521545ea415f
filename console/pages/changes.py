"""Shows changes and the audit log: who changed or tried to change what; also as a file."""

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.pages.errors import error_page
from console.queries import changes as query
from console.queries.frame import frame
from gateway.access import changes as access_changes
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of
from gateway.moments import NotAMoment


def _given(request: HttpRequest) -> dict[str, str]:
    return {name: request.GET.get(name, "") for name in request.GET}


@requires(Operation.VIEW_AUDIT)
@require_safe
def changes(request: HttpRequest) -> HttpResponse:
    # Deliver changes left by a crash, or by an outage of the database, before reading.
    access_changes.deliver()
    given = _given(request)
    try:
        asked, wrong = query.asked_of(given), None
    except NotAMoment as error:
        asked, wrong = query.asked_of(given | {"since": "", "until": ""}), error
    typed = {name: given.get(name, "") for name in ("since", "until")}
    if not wrong and typed != {"since": asked.since, "until": asked.until}:
        # The address means the same times to every reader, whatever their zone.
        named = urlencode({"cluster": cluster} if (cluster := given.get("cluster")) else {})
        return redirect(f"{request.path}?{'&'.join(filter(None, (asked.query, named)))}")
    reading = query.changes(request.GET.get("cluster"), asked, rights_of(request))
    context = {"page": "changes", "reading": reading, "data": reading.data, "wrong": wrong}
    context |= {"typed": typed}
    status = 503 if reading.is_failed else 400 if wrong else 200
    return render(request, "console/changes.html", context, status=status)


@requires(Operation.VIEW_AUDIT)
@require_safe
def change(request: HttpRequest, number: int) -> HttpResponse:
    reading = query.change(request.GET.get("cluster"), number, rights_of(request))
    if reading.is_empty:
        raise Http404
    context = {"page": "changes", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 200
    return render(request, "console/change.html", context, status=status)


@requires(Operation.VIEW_AUDIT)
@require_safe
def export(request: HttpRequest, form: str) -> HttpResponse:
    cluster_id = request.GET.get("cluster")
    shown = frame(cluster_id, rights_of(request)).shown
    # The audit of another cluster could be taken for that of the named one.
    if shown is None or cluster_id not in {None, shown.cluster_id}:
        raise Http404
    access_changes.deliver()
    try:
        # An audit on file is whole unless its query says otherwise.
        asked = query.asked_of(_given(request), has_workers=True)
    except NotAMoment as error:
        return error_page(400, title=f"{error}.", next_step=f"{error.next_step}.")
    file = query.exported(shown.cluster_id, asked, is_csv=form == "csv")
    answer = HttpResponse(file.content, content_type=file.content_type)
    answer["Content-Disposition"] = f'attachment; filename="{file.name}"'
    answer["Cache-Control"] = "no-store"
    if file.older is not None:
        rest = urlencode({**request.GET.dict(), "below": file.older})
        address = reverse(f"console:changes-{form}")
        answer["Link"] = f'<{address}?{rest}>; rel="next"'
    return answer
