"""The app by which Django knows the control plane."""

from django.apps import AppConfig


class ControlplaneConfig(AppConfig):
    name = "brokers.controlplane"
    label = "controlplane"
    default_auto_field = "django.db.models.BigAutoField"
