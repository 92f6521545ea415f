"""`manage.py collector`: runs the collector of this home in the foreground."""

import os

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from brokers.clock import SystemClock
from brokers.controlplane.logs import log
from console.management.directory import DatabaseDirectory
from console.monitoring.daemon import Daemon, Outlet, Settings, run
from console.monitoring.samples import FILE_NAME

# The umask for all files of the collector.
PRIVATE = 0o077


class Command(BaseCommand):
    help = "Monitor the brokers for the console's pages until stopped."
    # Django's system checks are about the web.
    requires_system_checks = ()

    def handle(self, *_: object, **__: object) -> None:
        os.umask(PRIVATE)
        told = Settings(
            socket=settings.SAMSA_COLLECTOR_SOCKET,
            samples=settings.SAMSA_HOME / FILE_NAME,
            inspection_keys=settings.SAMSA_SECRETS / "inspection",
            metrics_keys=settings.SAMSA_SECRETS / "metrics",
            address=settings.SAMSA_COLLECTOR,
        )
        directory = DatabaseDirectory(settings.SAMSA_HOME / "cluster-id")
        daemon = Daemon(
            told,
            directory=directory,
            clock=SystemClock(),
            log=log,
            outlet=outlet_for(settings.SAMSA_METRICS_TOPIC),
        )
        try:
            run(daemon, settings.SAMSA_READY_FD)
        except OSError as error:
            raise CommandError(f"the collector cannot serve: {error}") from error


def outlet_for(topic: str) -> Outlet | None:
    """Return the writer of samples to a topic; None if no topic is set."""
    if not topic:
        return None
    # Kafka's client takes 12 MB, which most collectors do not need.
    from console.monitoring.metrics_topic import MetricsTopic  # noqa: PLC0415

    return MetricsTopic(topic, log=log)
