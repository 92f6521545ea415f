"""Makes and checks names of consumer instances; generated names contain the owning worker.

Generated names are signed, so that a client cannot choose the worker that a call is passed to.
"""

import uuid
from typing import Final

from django.core import signing

from gateway.rest.codes import ApiError, Code

# Names of groups and instances are parts of URLs; the limit is that of topic names.
MAX_CHARS: Final = 249
PREFIX: Final = "rest-consumer-"


def made(group: str, owner: str) -> str:
    """Return a new name that contains the owning worker."""
    return _signer(group).sign(f"{PREFIX}{uuid.uuid4().hex}.{owner}")


def owner_in(group: str, name: str) -> str | None:
    """Return the worker in a generated name; None for a name that a client has chosen."""
    try:
        return _signer(group).unsign(name).rpartition(".")[2]
    except signing.BadSignature:
        return None


def check(what: str, name: str) -> None:
    """Refuse a name that does not fit into a URL, a log line or a page."""
    if not name or len(name) > MAX_CHARS or not name.isprintable():
        shown = "".join(sign if sign.isprintable() else "?" for sign in name[:80])
        raise ApiError(
            Code.CONSUMER_CONFIG,
            f"the name of the {what} is {shown!r}, with {len(name)} characters: give 1 to"
            f" {MAX_CHARS} that can be printed",
        )


def _signer(group: str) -> signing.Signer:
    # Parts are separated by dots; the characters of a signature are URL-safe.
    return signing.Signer(sep=".", salt=f"samsa.rest.consumer:{group}")
