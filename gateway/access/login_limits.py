"""Limits failed logins per address and account, and per address but for loopback.

All local users of a host share its loopback address, and one who guesses there has the whole
network 127.0.0.0/8: a limit on the address would only lock out the others.

An attacker cannot lock another user's account, because no limit is on the account alone: one who
guesses from many addresses gets few attempts at each, and `password_hasher` limits the total.
Counts are in the web database, so that all web processes share them. The table is bounded: a client
that tries a million made-up names only evicts other made-up names, and its own address is counted
all the same.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import F
from django.utils.crypto import salted_hmac

from gateway.access.models import FailedLogin
from gateway.addresses import is_loopback, network_of

WINDOW: Final = timedelta(minutes=15)
# A person who has forgotten a password tries a handful of times.
MAX_PER_PAIR: Final = 10
# Many people may share the address of an office, or of a proxy that is not declared as trusted.
MAX_PER_ADDRESS: Final = 100
# Rows in the table: a few megabytes.
MAX_SOURCES: Final = 10_000
# An older release has counted with this name: another one would forget its counts.
SALT: Final = "console.login_limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The source of an attempt and its account."""

    address: str
    account: str

    def limits(self) -> tuple[tuple[str, int], ...]:
        """Return each counted source, as a digest, with its limit."""
        network = network_of(self.address)
        pair = (self.pair, MAX_PER_PAIR)
        if is_loopback(self.address):
            return (pair,)
        return ((digest("address", network), MAX_PER_ADDRESS), pair)

    @property
    def pair(self) -> str:
        # No address contains a line feed, so pairs are unambiguous.
        return digest("pair", f"{network_of(self.address)}\n{self.account.strip().lower()}")


def attempt(sources: Sources, *, now: Callable[[], float] = time.time) -> int:
    """Count an attempt as failed until it succeeds.

    Return 0 if it may proceed, else the seconds to wait; then it is not counted, so that waiting
    helps.
    """
    moment = datetime.fromtimestamp(now(), tz=UTC)
    with transaction.atomic():
        wait_s = _count(sources, moment)
        _keep_bounded(moment)
    return wait_s


def take_back(sources: Sources) -> None:
    """Undo the count of an attempt whose password was not checked."""
    digests = [source for source, _ in sources.limits()]
    FailedLogin.objects.filter(source__in=digests, failures__gt=0).update(
        failures=F("failures") - 1
    )


def forget(sources: Sources) -> None:
    """Forget the failures of an account that has logged in, at its address.

    For the address, only this attempt is undone: a login to one's own account must not reset the
    limit for other accounts.
    """
    take_back(sources)
    FailedLogin.objects.filter(source=sources.pair).delete()


def digest(kind: str, text: str) -> str:
    return salted_hmac(f"{SALT}.{kind}", text, algorithm="sha256").hexdigest()


def _count(sources: Sources, moment: datetime) -> int:
    """Count for every source, or for none if one has to wait."""
    counted = []
    for source, limit in sources.limits():
        row = _row(source, moment)
        if row.failures >= limit:
            # The address comes first, so one that has to wait adds no more rows.
            return int((row.window_started_at + WINDOW - moment).total_seconds()) + 1
        row.failures += 1
        counted.append(row)
    for row in counted:
        row.save()
    return 0


def _row(source: str, moment: datetime) -> FailedLogin:
    """Return the source's count, locked; an expired window starts over."""
    # Two concurrent first attempts create a single row.
    row, _ = FailedLogin.objects.select_for_update().get_or_create(
        source=source, defaults={"window_started_at": moment}
    )
    if row.window_started_at + WINDOW <= moment:
        row.failures, row.window_started_at = 0, moment
    return row


def _keep_bounded(moment: datetime) -> None:
    if FailedLogin.objects.count() <= MAX_SOURCES:
        return
    FailedLogin.objects.filter(window_started_at__lte=moment - WINDOW).delete()
    surplus = FailedLogin.objects.count() - MAX_SOURCES
    if surplus > 0:
        oldest = FailedLogin.objects.order_by("failures", "window_started_at")[:surplus]
        FailedLogin.objects.filter(pk__in=[row.pk for row in oldest]).delete()
