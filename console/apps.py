"""What Django needs to know of the console."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "console"
    verbose_name = "Console"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the event streams tell when the mirror that pages read moves."""
        # Models are there only now, and both read them.
        from console.events import running  # noqa: PLC0415
        from console.queries import live  # noqa: PLC0415

        running.read_tables(lambda: live.source().snapshot())
