"""Configures the console as a Django app."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.conf import settings

if TYPE_CHECKING:
    from gateway.health import Application


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

    def streams(self) -> "Mapping[str, Application]":
        """Return the streams by their path, which `gateway.asgi` serves past Django's views."""
        # As in `ready`.
        from console.events import endpoint as events  # noqa: PLC0415
        from console.events import running  # noqa: PLC0415
        from console.messages import endpoint as messages  # noqa: PLC0415
        from console.messages import running as reading  # noqa: PLC0415

        return {
            events.PATH: running.application,
            **dict.fromkeys(messages.ROUTES, reading.application),
        }

    def drain_streams(self) -> None:
        """End all streams; the hub of events has those of records, too."""
        from console.events import running  # noqa: PLC0415 - as in `ready`

        running.drain()
