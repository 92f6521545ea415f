"""The addresses of the console's pages."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from console.pages.login import Login
from console.pages.overview import overview
from console.pages.topics import topics

app_name = "console"

urlpatterns = [
    path("", overview, name="overview"),
    path("topics", topics, name="topics"),
    path("login", Login.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
]
