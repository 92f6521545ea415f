"""`manage.py ensure_first_user`: creates the first user of a new console. The agent calls it."""

from django.core.management import BaseCommand

from gateway.access import first_user


class Command(BaseCommand):
    help = "Create the first user of a console that has none, and write its password to a file."
    # Django's system checks are about the web.
    requires_system_checks = ()

    def handle(self, *_: object, verbosity: int, **__: object) -> None:
        if first_user.ensure() and verbosity:
            self.stdout.write(
                f"created {first_user.NAME}, with the password in {first_user.file()}"
            )
