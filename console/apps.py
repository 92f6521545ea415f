"""What Django needs to know of the console."""

from django.apps import AppConfig
from django.conf import settings


class ConsoleConfig(AppConfig):
    name = "console"
    verbose_name = "Console"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have streams tell when the mirror moves, and the audit take over what waits for it."""
        if settings.DOOR != "web":
            # A worker of the gateway serves no tabs and changes no access; these are 4 MB of it.
            return
        # Models are there only now, and all of these read them.
        from console import access_changes, connector_changes  # noqa: PLC0415
        from console.events import running  # noqa: PLC0415
        from console.queries import live  # noqa: PLC0415
        from gateway.access import changes  # noqa: PLC0415

        def deliver() -> None:
            access_changes.deliver()
            connector_changes.deliver()

        changes.delivered_by(deliver)
        running.read_tables(lambda: live.source().snapshot())
