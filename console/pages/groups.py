"""Shows the groups of a cluster, worst first, and one with its partitions and members."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from console import group_names
from console.queries import group as group_query
from console.queries import group_table
from console.queries import groups as query
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of


@requires(Operation.VIEW)
@require_safe
def groups(request: HttpRequest) -> HttpResponse:
    asked = group_table.asked_of(request.GET.dict())
    reading = query.groups(request.GET.get("cluster"), asked, rights_of(request))
    context = {"page": "groups", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 200
    return render(request, "console/groups.html", context, status=status)


@requires(Operation.VIEW)
@require_safe
def group(request: HttpRequest) -> HttpResponse:
    asked = group_query.asked_of(request.GET.dict())
    reading = group_query.group(request.GET.get("cluster"), asked, rights_of(request))
    context = {"page": "groups", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 404 if reading.is_empty else 200
    return render(request, "console/group.html", context, status=status)


@requires(Operation.VIEW)
@require_safe
def group_by_path(request: HttpRequest, name: str) -> HttpResponse:
    """Redirect from a handwritten URL to the one that supports every name."""
    return redirect(group_names.link(request.GET.get("cluster", ""), name))
