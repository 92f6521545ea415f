"""`manage.py connect_beat`: the process that plans connectors' tasks, in the foreground."""

import logging
import os

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from connectors.tasks import beat, home
from gateway import log_lines

PRIVATE = 0o077


class Command(BaseCommand):
    help = "Plan the tasks of connectors until stopped."
    # Django's checks are about the web.
    requires_system_checks = ()

    def handle(self, *_: object, **__: object) -> None:
        os.umask(PRIVATE)
        if not settings.REDIS_URL:
            raise CommandError("REDIS_URL is not set: name the server that workers get messages by")
        log_lines.begin(logging.INFO)
        beat.serve(home.cluster(), home.say_ready)
