"""Declares the Django app of the access rights."""

from django.apps import AppConfig


class AccessConfig(AppConfig):
    name = "gateway.access"
    label = "access"
    verbose_name = "Access"
    default_auto_field = "django.db.models.BigAutoField"
