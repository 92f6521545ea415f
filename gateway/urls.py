"""What answers at which address: the console at the root, and a sign of life beside it."""

from django.urls import URLPattern, URLResolver, include, path

from gateway.health import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("health", health, name="health"),
    path("", include("console.urls")),
]

# Django asks for them by name.
handler400 = "console.pages.errors.bad_request"
handler403 = "console.pages.errors.forbidden"
handler404 = "console.pages.errors.not_found"
handler500 = "console.pages.errors.failed"
