"""Django's name for this room's tables: app label `connectors`, in a database of their own."""

from django.apps import AppConfig


class ConnectorsConfig(AppConfig):
    name = "connectors"
    label = "connectors"
