"""`manage.py rotate_secret`: a new key beside the one in use, for one purpose or all."""

from argparse import ArgumentParser
from typing import Final

from django.core.management import BaseCommand, CommandError

from brokers.clock import SystemClock
from brokers.controlplane import services
from brokers.controlplane.agent.daemon import FIRST_CLUSTER
from brokers.controlplane.cluster_secrets import ACTIVATION_MS
from brokers.security.cluster_keys import Purpose

EVERY: Final = "all"


class Command(BaseCommand):
    help = (
        "Make a new key for a purpose. It is used after"
        f" {ACTIVATION_MS // 1000} s; the former one is valid until the next rotation."
    )
    # Checks concern the web.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--purpose",
            required=True,
            choices=[*(purpose.value for purpose in Purpose), EVERY],
            help="what the key opens",
        )
        parser.add_argument("--cluster", default=FIRST_CLUSTER, help="the cluster's name")

    def handle(self, *_: object, purpose: str, cluster: str, **__: object) -> None:
        for asked in Purpose if purpose == EVERY else [Purpose(purpose)]:
            try:
                key_id = services.rotate_secret(
                    name=cluster, purpose=asked, now_ms=SystemClock().now_ms()
                )
            except services.RotationRefused as error:
                raise CommandError(str(error)) from error
            self.stdout.write(
                f"{asked.value}: key {key_id} is valid, and in use after"
                f" {ACTIVATION_MS // 1000} s; key {key_id - 1} is valid until the next rotation"
            )
