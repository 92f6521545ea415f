"""Seals a plan between its preview and its application, so that exactly what was shown is applied.

The holder's browser or program keeps the sealed plan, and the server stores nothing. A seal is
signed and not encrypted: its holder has seen what is in it. The same seal may be returned twice;
the ids and versions in a plan are what prevents that it is applied twice.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from django.core import signing

# The time that a user has to review a preview.
MAX_AGE_S: Final = 3600
# Django accepts forms of 2.5 MB. A plan for 10,000 partitions of a group takes a tenth of this.
MAX_CHARS: Final = 2_000_000
_PURPOSE: Final = "samsa.plan"


class BadSeal(Exception):
    """The seal has expired, is invalid or of another holder; or a plan is too large for one."""


class _MessagePack:
    """The serializer of Django's signer: the name of a kind of plan, and a plan as Raw."""

    def dumps(self, sealed: tuple[str, object]) -> bytes:
        return msgspec.msgpack.encode(sealed)

    def loads(self, data: bytes) -> tuple[str, msgspec.Raw]:
        return msgspec.msgpack.decode(data, type=tuple[str, msgspec.Raw])


def seal(kind: str, plan: object, *, holder: str) -> str:
    """Return a plan, a dataclass, as a text that only this holder can apply, for an hour."""
    try:
        text = _signer(holder).sign_object((kind, plan), serializer=_MessagePack, compress=True)
    except UnicodeEncodeError as error:
        raise BadSeal(f"the plan has a text that is not Unicode: {error}") from error
    if len(text) > MAX_CHARS:
        raise BadSeal(
            f"the plan takes {len(text)} characters, and {MAX_CHARS} is the most: make several"
            " smaller plans"
        )
    return text


def open_seal(text: str, *, holder: str, types: Mapping[str, type[Any]]) -> tuple[str, Any]:
    """Return the kind and the plan of a seal, whose type is that of its kind. Raises BadSeal."""
    try:
        kind, plan = _signer(holder).unsign_object(
            # A text that is too long is not a seal, nor is an empty one.
            text if len(text) <= MAX_CHARS else "",
            serializer=_MessagePack,
            max_age=MAX_AGE_S,
        )
        return kind, msgspec.msgpack.decode(plan, type=types[kind])
    # An earlier release may have sealed another kind of plan, or one with other fields.
    except (signing.BadSignature, KeyError, UnicodeError, msgspec.MsgspecError) as error:
        raise BadSeal(
            f"this is not a plan that was shown here within the last {MAX_AGE_S // 60} minutes: "
            "preview the change again, then apply it"
        ) from error


def _signer(holder: str) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"{_PURPOSE}:{json.dumps(holder)}")
