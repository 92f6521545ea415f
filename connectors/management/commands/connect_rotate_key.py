"""`./samsa manage connect_rotate_key`: a new key for the passwords of connectors, used at once."""

from typing import Any

from django.core.management.base import BaseCommand

from connectors import selectors, services
from connectors.vault import Vault


class Command(BaseCommand):
    help = (
        "Make a new key for the passwords of connectors, and seal all of them with it. Without"
        " --forget the former key still opens what another host has not seen yet: copy the file of"
        " keys to the other hosts first, then run this again with --forget."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--forget",
            action="store_true",
            help="seal all with the newest key, make none, and drop the former one",
        )

    def handle(self, *_args: object, **options: Any) -> None:
        vault: Vault = selectors.vault()
        if not options["forget"]:
            vault.rotate()
            # The cache of this process has the former keys.
            selectors.vault.cache_clear()
        count = services.seal_anew()
        newest = selectors.vault()
        if options["forget"]:
            newest.forget_former()
        kept = "alone" if options["forget"] else "and the former key opens what it has sealed"
        self.stdout.write(
            f"{count} connectors have passwords, sealed with key {newest.key_id} {kept}\n"
        )
