"""The addresses of a gateway's process that views serve; a room includes its own here."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
