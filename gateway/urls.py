"""URL routes: programmatic interfaces below their prefixes, and the console at the root."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from gateway.rest.unknown import unknown
from gateway.rest.urls import of_table

urlpatterns: list[URLPattern | URLResolver] = [
    *of_table,
    re_path(r"^connect(?:/|$)", include("connectors.rest.urls")),
    # After all paths that REST serves here.
    re_path(r"^(?:v3|kafka/v3|rest|ws|sse)(?:/|$)", unknown),
    path("", include("console.urls")),
]

# Django looks these names up.
handler400 = "console.pages.errors.bad_request"
handler403 = "console.pages.errors.forbidden"
handler404 = "console.pages.errors.not_found"
handler500 = "console.pages.errors.failed"
