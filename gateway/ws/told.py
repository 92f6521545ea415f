"""Types of the server's messages, for the description and for tests. Pure.

`frames` formats the messages by hand, because most of the output is records.
"""

from typing import Literal

import msgspec


class Part(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Something inside of a frame."""


class PlaceTold(Part):
    topic: str
    partition: int


class BegunAt(PlaceTold):
    """A partition and where it begins, which a group does not tell."""

    offset: int | None = None


class KeptAt(PlaceTold):
    offset: int


class HeaderTold(Part):
    """The value is base64."""

    name: str
    value: str | None


class RecordTold(Part):
    """`error` says which of the two could not be written in the format, and is base64."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: Literal["create", "append"] | None
    key: msgspec.Raw
    value: msgspec.Raw
    headers: list[HeaderTold]
    error: str | msgspec.UnsetType = msgspec.UNSET


class Told(Part, tag_field="type", tag=str.lower):
    """What the server says."""


class Ready(Told):
    protocol: str
    cluster_id: str
    caller: str


class Receipt(Told):
    id: str
    topic: str
    partition: int
    offset: int
    timestamp: int | None


class Throttle(Told):
    id: str
    ms: int


class Assigned(Told):
    sid: str
    partitions: list[BegunAt]


class Batch(Told):
    """Records of one partition; `hw` and `lag` where its end is known."""

    sid: str
    topic: str
    partition: int
    records: list[RecordTold]
    hw: int | msgspec.UnsetType = msgspec.UNSET
    lag: int | msgspec.UnsetType = msgspec.UNSET


class Acked(Told):
    sid: str
    offsets: list[KeptAt]


class Gap(Told):
    """Offsets from `from` on that nobody gets; reading goes on at `to`."""

    sid: str
    topic: str
    partition: int
    since: int = msgspec.field(name="from")
    to: int
    reason: Literal["deleted", "cut", "no_record"]
    message: str


class Revoked(Told):
    sid: str
    partitions: list[PlaceTold]
    reason: str
    ended: bool


class Error(Told):
    """Of a frame that is named by `id` or `sid`, or of the whole socket."""

    error_code: int
    message: str
    id: str | msgspec.UnsetType = msgspec.UNSET
    sid: str | msgspec.UnsetType = msgspec.UNSET


class Pong(Told):
    id: str | msgspec.UnsetType = msgspec.UNSET


AnyTold = Ready | Receipt | Throttle | Assigned | Batch | Acked | Gap | Revoked | Error | Pong
