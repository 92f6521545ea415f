"""Decodes records of `__consumer_offsets`; undecodable ones are shown as bytes. Pure."""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeAlias

from brokers.coordination.groups import records
from brokers.coordination.groups.record_messages import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataValue,
    OffsetCommitValue,
)
from brokers.protocol.errors import KafkaError
from brokers.protocol.schema import Message
from console.messages.forms import Shown, show

Json: TypeAlias = Any

# A larger value is shown as bytes; the metadata of a group with hundreds of members is smaller.
MAX_DECODED: Final = 1024 * 1024
# The length of a topic id.
ID_BYTES: Final = 16

# Type of the key: its word, and the type of its value.
KINDS: Final[Mapping[type, tuple[str, type[Message]]]] = {
    records.OffsetKey: ("offset_commit", OffsetCommitValue),
    records.GroupKey: ("group_metadata", GroupMetadataValue),
    records.ConsumerGroupKey: ("consumer_group_metadata", ConsumerGroupMetadataValue),
    records.MemberKey: ("consumer_group_member", ConsumerGroupMemberMetadataValue),
    records.TargetKey: ("consumer_group_target", ConsumerGroupTargetAssignmentMetadataValue),
    records.TargetMemberKey: (
        "consumer_group_target_member",
        ConsumerGroupTargetAssignmentMemberValue,
    ),
    records.CurrentMemberKey: (
        "consumer_group_current_member",
        ConsumerGroupCurrentMemberAssignmentValue,
    ),
    records.RegexKey: ("consumer_group_regex", ConsumerGroupRegularExpressionValue),
}


def shown_key(data: bytes | None, *, most: int) -> Shown:
    if data is None or len(data) > MAX_DECODED:
        return show(data, most=most)
    try:
        key = records.decode_key(data)
    except KafkaError as error:
        return replace(show(data, most=most), note=f"no key of a group: {error}")
    if key is None:
        note = f"a key of type {int.from_bytes(data[:2])}, which is not known here"
        return replace(show(data, most=most), note=note)
    kind = KINDS[type(key)][0] if type(key) in KINDS else "partition_metadata"
    return _shown(kind, key, data, most)


def shown_value(key_data: bytes | None, data: bytes | None, *, most: int) -> Shown:
    if key_data is None or not data or len(key_data) + len(data) > MAX_DECODED:
        return show(data, most=most)
    try:
        key = records.decode_key(key_data)
        if type(key) not in KINDS:
            return show(data, most=most)
        kind, message = KINDS[type(key)]
        value = records.decode_value(message, data)
    except KafkaError as error:
        return replace(show(data, most=most), note=f"no value of a group: {error}")
    return _shown(kind, value, data, most, note=f"version {int.from_bytes(data[:2])}")


def _shown(kind: str, thing: object, data: bytes, most: int, *, note: str = "") -> Shown:
    text = json.dumps(_plain(thing), ensure_ascii=False)
    is_cut = len(text) > most
    return Shown(kind=kind, text=text[:most], size=len(data), is_cut=is_cut, note=note)


def _plain(thing: object) -> Json:
    """Return a value that JSON can express."""
    if isinstance(thing, bytes):
        return thing.hex() if len(thing) == ID_BYTES else {"$bytes": b64encode(thing).decode()}
    if isinstance(thing, Message):
        return {field.name: _plain(getattr(thing, field.name)) for field in thing.FIELDS}
    if isinstance(thing, records.OffsetKey):
        return thing._asdict()
    if is_dataclass(thing):
        return {field.name: _plain(getattr(thing, field.name)) for field in fields(thing)}
    if isinstance(thing, list):
        return [_plain(one) for one in thing]
    return thing
