"""`manage.py grant_role USER ROLE`: grants a role on everything, if no user can open Users."""

from argparse import ArgumentParser

from django.core.management import BaseCommand, CommandError

from gateway.access import services
from gateway.access.audit import Actor
from gateway.access.operations import Role


class Command(BaseCommand):
    help = "Give a user of the console a role on all clusters."
    # Django's system checks are about the web.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="the name that the user signs in with")
        parser.add_argument("role", choices=[role.value for role in Role])

    def handle(self, *_: object, user: str, role: str, **__: object) -> None:
        try:
            services.ensure_role(actor=Actor(name="manage.py"), name=user, role=Role(role))
        except services.Refused as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{user} has the role {role} on all clusters")
