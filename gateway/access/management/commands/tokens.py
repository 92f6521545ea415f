"""`manage.py tokens`: creates, lists and revokes API tokens on the host, as `./samsa tokens` does.

Standard output gets nothing but the created token, so that a script can capture it.
"""

import getpass
import re
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.db import DatabaseError

from gateway.access import services, token_selectors, token_services
from gateway.access.audit import Actor
from gateway.access.grants import Grant
from gateway.access.token_scopes import SCOPES, grants_of, together

LIFE: Final = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)
SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class Command(BaseCommand):
    help = "Create, list and revoke the tokens by which programs are known."
    # Django's system checks are about the web.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="create a token and print it")
        create.add_argument("name")
        for scope, row in SCOPES.items():
            if row.kind is None:
                create.add_argument(f"--{scope.value}", action="store_true", help=row.sentence)
            else:
                create.add_argument(
                    f"--{scope.value}",
                    action="append",
                    default=[],
                    metavar="PATTERN",
                    help=row.sentence,
                )
        create.add_argument("--expires", default="", metavar="DURATION", help="as 30d or 12h")
        verbs.add_parser("list", help="list all tokens")
        verbs.add_parser("revoke", help="end a token at once").add_argument("name")

    def handle(self, *_: object, verb: str, **given: Any) -> None:  # noqa: ANN401 - of argparse
        try:
            {"create": self._create, "list": self._list, "revoke": self._revoke}[verb](given)
        except services.Refused as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(
                f"the database of {settings.SAMSA_HOME} has no answer ({error}): start the home"
                " with `./samsa up`, which makes its tables, and try again"
            ) from error

    def _create(self, given: dict[str, Any]) -> None:
        text = token_services.create_token(
            actor=_actor(),
            name=given["name"],
            grants=_grants(given),
            life=_life(given["expires"]),
        )
        self.stdout.write(text)

    def _list(self, _given: dict[str, Any]) -> None:
        for row in token_selectors.tokens():
            rights = ", ".join(services.described(grant) for grant in row.grants)
            expires = "never" if row.expires_at is None else f"{row.expires_at:%Y-%m-%d %H:%MZ}"
            used = "never" if row.last_used_at is None else f"{row.last_used_at:%Y-%m-%d %H:%MZ}"
            self.stdout.write(
                f"{row.name}\t{row.state.value}\t{row.prefix}…\tby {row.created_by}\t"
                f"expires {expires}\tused {used}\t{rights}"
            )

    def _revoke(self, given: dict[str, Any]) -> None:
        token_services.revoke_named(actor=_actor(), name=given["name"])
        self.stderr.write(f"{given['name']} is revoked: programs that show it are refused")


def _actor() -> Actor:
    try:
        return Actor(name=f"host:{getpass.getuser()}")
    except (KeyError, OSError):
        # A container may have no name for its user.
        return Actor(name="host")


def _grants(given: dict[str, Any]) -> tuple[Grant, ...]:
    found: list[Grant] = []
    for scope, row in SCOPES.items():
        if row.kind is None:
            found += grants_of(scope) if given[scope.value] else ()
        else:
            found += [g for pattern in given[scope.value] for g in grants_of(scope, pattern)]
    if not found:
        options = ", ".join(f"--{scope.value}" for scope in SCOPES)
        raise CommandError(f"a token needs at least one right: give one of {options}")
    return together(found)


def _life(text: str) -> timedelta | None:
    if not text:
        return None
    parts = LIFE.fullmatch(text)
    if parts is None:
        raise CommandError(f"--expires is “{text[:20]}”: give a number and s, m, h or d, as 30d")
    return timedelta(seconds=int(parts[1]) * SECONDS[parts[2]])
