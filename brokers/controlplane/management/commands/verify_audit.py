"""`manage.py verify_audit`: whether the audit is as it was written."""

from argparse import ArgumentParser, ArgumentTypeError

from django.core.management import BaseCommand, CommandError

from brokers.controlplane import audit, selectors
from brokers.controlplane.agent.daemon import FIRST_CLUSTER


def noted_entry(text: str) -> tuple[int, str]:
    number, colon, digest = text.partition(":")
    if not (colon and digest and number.isascii() and number.isdigit()):
        raise ArgumentTypeError(
            f"{text!r} is not NUMBER:DIGEST, as an earlier run of this command showed them"
        )
    return int(number), digest


class Command(BaseCommand):
    help = (
        "Follow the chain of the audit's digests. Note the last line elsewhere, and give it as "
        "--noted next time: this detects a log that was rewritten as a whole."
    )
    # Checks concern the web.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--noted", type=noted_entry, metavar="NUMBER:DIGEST", default=None)
        parser.add_argument("--cluster", default=FIRST_CLUSTER, help="the cluster's name")

    def handle(self, *_: object, noted: tuple[int, str] | None, cluster: str, **__: object) -> None:
        ids = {each.name: each.cluster_id for each in selectors.clusters()}
        if cluster not in ids:
            raise CommandError(
                f"there is no cluster {cluster!r}; there are: {', '.join(ids) or 'none'}"
            )
        found = audit.verify(cluster_id=ids[cluster], noted=noted)
        if found.faults:
            raise CommandError(
                "the audit is not as it was written: "
                + "; ".join(found.faults)
                + ". Compare it with a backup of the database."
            )
        self.stdout.write(f"entries {found.first} to {found.last} are as they were written")
        if found.last:
            self.stdout.write(f"{found.last}:{found.digest}")
