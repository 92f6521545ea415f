"""Names of consumer instances: those that clients choose, and ours, which carry their owner.

A name of ours is signed, so that nobody can have a call passed on to where they like.
"""

import uuid
from typing import Final

from django.core import signing

from gateway.rest.codes import ApiError, Code

# Names of groups and instances are parts of addresses; the longest of a topic is as long.
MAX_CHARS: Final = 249
PREFIX: Final = "rest-consumer-"


def made(group: str, owner: str) -> str:
    """Return a new name that carries the worker which owns it."""
    return _signer(group).sign(f"{PREFIX}{uuid.uuid4().hex}.{owner}")


def owner_in(group: str, name: str) -> str | None:
    """Return the worker that made a name; None for one that a client has chosen."""
    try:
        return _signer(group).unsign(name).rpartition(".")[2]
    except signing.BadSignature:
        return None


def check(what: str, name: str) -> None:
    """Refuse a name that no address, log or page could carry."""
    if not name or len(name) > MAX_CHARS or not name.isprintable():
        shown = "".join(sign if sign.isprintable() else "?" for sign in name[:80])
        raise ApiError(
            Code.CONSUMER_CONFIG,
            f"the name of the {what} is {shown!r}, with {len(name)} characters: give 1 to"
            f" {MAX_CHARS} that can be printed",
        )


def _signer(group: str) -> signing.Signer:
    # A dot ends each part; the letters of a signature are those of URLs.
    return signing.Signer(sep=".", salt=f"samsa.rest.consumer:{group}")
