"""Configures the Django app `connectors`, whose tables are in a database of their own."""

from django.apps import AppConfig


class ConnectorsConfig(AppConfig):
    name = "connectors"
    label = "connectors"
