"""Makes Django's URLs of the table of routes; alone, those of the gateway's own port."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from gateway.rest.openapi.served import FILE, serve
from gateway.rest.route import V3
from gateway.rest.table import door, table
from gateway.rest.unknown import unknown
from gateway.rest.views import at, patterns

of_table: list[URLPattern | URLResolver] = [
    *(path(f"{at(prefix)}{FILE}", serve) for prefix in V3),
    *(path(at(below.prefix), include(patterns(below.routes))) for below in table(door())),
]
# Last: the fallback for all other paths.
urlpatterns: list[URLPattern | URLResolver] = [*of_table, re_path("", unknown)]

# Django looks these names up.
handler400 = "gateway.rest.unknown.bad_request"
handler403 = "gateway.rest.unknown.forbidden"
handler404 = "gateway.rest.unknown.unknown"
handler500 = "gateway.rest.unknown.failed"
