"""`manage.py agent`: the agent of this home, in the foreground."""

from django.core.management import BaseCommand, CommandError

from brokers.controlplane.agent.daemon import StartRefused, run
from brokers.controlplane.agent.home import HomeDamaged, HomeInUse


class Command(BaseCommand):
    help = "Serve this host's brokers until stopped."
    # Checks concern the web; an agent must start fast.
    requires_system_checks = ()

    def handle(self, *_: object, **__: object) -> None:
        try:
            run()
        except (HomeInUse, HomeDamaged, StartRefused) as error:
            raise CommandError(str(error)) from error
