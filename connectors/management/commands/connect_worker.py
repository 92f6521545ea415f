"""`manage.py connect_worker NAME`: a worker of connectors' tasks, in the foreground."""

import hashlib
import logging
import os
import warnings
from typing import Any

from celery.platforms import SecurityWarning  # type: ignore[import-untyped]
from django.conf import settings
from django.core.management import BaseCommand, CommandError, CommandParser

from connectors.runtime.cluster_wire import ClusterWire
from connectors.runtime.pools import PLAIN, POOLS
from connectors.tasks import home, processes, worker
from gateway import log_lines

PRIVATE = 0o077


class Command(BaseCommand):
    help = "Run tasks of connectors until stopped."
    # Django's checks are about the web.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="of this worker in its home, as connect-worker-1")
        parser.add_argument(
            "--pool",
            default=PLAIN,
            choices=list(POOLS),
            help="the pool whose tasks to run, as spark; by default those without a pool",
        )

    def handle(self, *_: object, **given: Any) -> None:
        os.umask(PRIVATE)
        if not settings.REDIS_URL:
            raise CommandError("REDIS_URL is not set: name the server that workers get messages by")
        log_lines.begin(logging.INFO)
        # `up` has warned about root already, and no message here can name code to run.
        warnings.simplefilter("ignore", SecurityWarning)
        # Celery would log every message that it receives.
        logging.getLogger("celery").setLevel(logging.WARNING)
        name = given["name"]
        place = worker.Place(
            cluster=home.cluster(), name=name_of(name), component=name, pool=given["pool"]
        )
        worker.serve(place, lambda: ClusterWire(home.connection), home.say_ready)


def name_of(name: str) -> str:
    """Return a name that is unique among all homes and hosts."""
    own = hashlib.sha256(str(settings.SAMSA_HOME.resolve()).encode()).hexdigest()[:8]
    return f"{name}.{own}.{processes.host()}"
