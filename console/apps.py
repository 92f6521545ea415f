"""What Django needs to know of the console."""

from django.apps import AppConfig
from django.conf import settings


class ConsoleConfig(AppConfig):
    name = "console"
    verbose_name = "Console"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the event streams tell when the mirror that pages read moves."""
        if settings.DOOR != "web":
            # A worker of the gateway serves no tabs; these are 4 MB of it.
            return
        # Models are there only now, and both read them.
        from console.events import running  # noqa: PLC0415
        from console.queries import live  # noqa: PLC0415

        running.read_tables(lambda: live.source().snapshot())
