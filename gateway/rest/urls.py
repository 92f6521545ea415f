"""Lists the URLs of a gateway's views; each package includes its own here."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from gateway.rest.unknown import unknown

urlpatterns: list[URLPattern | URLResolver] = [
    path("v3/", include("gateway.rest.v3.urls")),
    path("kafka/v3/", include("gateway.rest.v3.urls")),
    path("", include("gateway.rest.v2.urls")),
    # Last: the fallback for all other paths.
    re_path("", unknown),
]

# Django looks these names up.
handler400 = "gateway.rest.unknown.bad_request"
handler403 = "gateway.rest.unknown.forbidden"
handler404 = "gateway.rest.unknown.unknown"
handler500 = "gateway.rest.unknown.failed"
