"""Configures the console as a Django app."""

from django.apps import AppConfig
from django.conf import settings


class ConsoleConfig(AppConfig):
    name = "console"
    verbose_name = "Console"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Let streams publish changes of the mirror, and the audit log take pending changes."""
        if settings.DOOR != "web":
            # A gateway worker serves no pages and changes no access; these imports take 4 MB.
            return
        # Models exist only now, and all of these read them.
        from console import access_changes, connector_changes  # noqa: PLC0415
        from console.events import running  # noqa: PLC0415
        from console.queries import live  # noqa: PLC0415
        from gateway.access import changes  # noqa: PLC0415

        def deliver() -> None:
            access_changes.deliver()
            connector_changes.deliver()

        changes.delivered_by(deliver)
        running.read_tables(lambda: live.source().snapshot())
