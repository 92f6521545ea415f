"""ExtractNewRecordState: unwraps the row from a change event, like Debezium's transform.

A record whose schema is not an envelope passes unchanged. `delete.tombstone.handling.mode` sets
how deletes and tombstones are handled; the two keys of older versions work too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from connectors.runtime.transforms import insert_field, replace_field
from connectors.runtime.transforms.field_paths import unknown
from connectors.runtime.transforms.sides import FILLS, FILLS_KEY, Apply, Side, struct_of
from connectors.runtime.values.structs import Derived, with_fields
from connectors.sdk.checks import OneOf, one_of
from connectors.sdk.configs import Check, Definition, Importance, Key, Kind, Width
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.records import Header, Record
from connectors.sdk.schemas import STRING, Field, Schema, Struct, Type


class Deletes(Enum):
    """How to handle a delete event and the tombstone after it."""

    DROP = "drop"  # both are dropped
    TOMBSTONE = "tombstone"  # the delete loses its value; the tombstone is dropped
    REWRITE_WITH_TOMBSTONE = "rewrite-with-tombstone"  # the old row; the tombstone stays
    REWRITE = "rewrite"  # the old row; the tombstone is dropped
    DELETE_TO_TOMBSTONE = "delete-to-tombstone"  # as TOMBSTONE, without a schema


MODE: Final = "delete.tombstone.handling.mode"
TRUNCATIONS: Final = "truncate.handling.mode"
DROP, KEEP = "drop", "keep"
ROUTE: Final = "route.by.field"
OLD_TOMBSTONES: Final = "drop.tombstones"
OLD_DELETES: Final = "delete.handling.mode"
# The two keys of older versions, combined: whether tombstones are dropped, and the mode.
OLD_MODES: Final[Mapping[tuple[bool, str], Deletes]] = {
    (True, "drop"): Deletes.DROP,
    (True, "rewrite"): Deletes.REWRITE,
    (True, "none"): Deletes.TOMBSTONE,
    (False, "drop"): Deletes.TOMBSTONE,
    (False, "rewrite"): Deletes.REWRITE_WITH_TOMBSTONE,
    (False, "none"): Deletes.TOMBSTONE,
}
# In rewritten rows, a text says whether the row was deleted.
DELETED: Final = "__deleted"
REWRITES: Final = frozenset((Deletes.REWRITE, Deletes.REWRITE_WITH_TOMBSTONE))
# Structs for fields named without one; any other field is looked up in `source`.
STRUCTS: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(("id", "data_collection_order", "total_order"), "transaction"),
    **dict.fromkeys(("op", "ts_ms", "ts_us", "ts_ns")),
    "updateDescription": "updateDescription",
}
ENVELOPE: Final = ".Envelope"
# How many sets of dropped fields to cache a transform for.
MAX_KEPT: Final = 64


def _check_old_deletes(value: Any) -> str | None:
    return None if value is None else one_of("drop", "rewrite", "none")(value)


def _key(
    name: str,
    kind: Kind,
    default: Any,
    doc: str,
    *,
    title: str,
    width: Width,
    importance: Importance = Importance.LOW,
    check: Check | None = None,
) -> Key:
    return Key(
        name=name,
        kind=kind,
        default=default,
        doc=doc,
        display_name=title,
        width=width,
        importance=importance,
        check=check,
    )


KEYS: Final = Definition(
    (
        _key(
            MODE,
            Kind.STRING,
            Deletes.TOMBSTONE.value,
            "The handling of a delete and the tombstone after it. drop: both are dropped. "
            "tombstone: the delete becomes one. rewrite: the old row, with __deleted; the "
            "tombstone is dropped. rewrite-with-tombstone: it stays. delete-to-tombstone: as "
            "tombstone, without a schema.",
            title="Handle delete and tombstone records",
            width=Width.MEDIUM,
            importance=Importance.MEDIUM,
            check=OneOf(
                words=tuple(mode.value for mode in Deletes),
                sentence="Value must be one of",
                fold=str,
            ),
        ),
        _key(
            TRUNCATIONS,
            Kind.STRING,
            DROP,
            "The handling of the event of a TRUNCATE, which has no row. drop: it is dropped, as "
            "by Debezium. keep: it is passed on as it is, for a sink that can empty its table.",
            title="Handle truncate records",
            width=Width.SHORT,
            check=one_of(DROP, KEEP),
        ),
        _key(
            ROUTE,
            Kind.STRING,
            "",
            "A field of the row whose value becomes the topic.",
            title="Route by field name",
            width=Width.LONG,
        ),
        _key(
            "add.fields.prefix",
            Kind.STRING,
            "__",
            "The prefix of the names of added fields.",
            title="Field prefix to be added to each field.",
            width=Width.SHORT,
        ),
        _key(
            "add.fields",
            Kind.LIST,
            [],
            "Fields of the event to add to the row, as op, source.ts_ms or "
            "transaction.id:tx, which becomes tx.",
            title="Adds the specified field(s) to the message if they exist.",
            width=Width.LONG,
        ),
        _key(
            "add.headers.prefix",
            Kind.STRING,
            "__",
            "The prefix of the names of added headers.",
            title="Header prefix to be added to each header.",
            width=Width.SHORT,
        ),
        _key(
            "add.headers",
            Kind.LIST,
            [],
            "Fields of the event to add as headers, named as in add.fields.",
            title="Adds the specified fields to the header if they exist.",
            width=Width.LONG,
        ),
        _key(
            "drop.fields.header.name",
            Kind.STRING,
            None,
            "A header that lists fields of the row to drop.",
            title="Specifies a header that contains a list of field names to be removed",
            width=Width.SHORT,
        ),
        _key(
            "drop.fields.from.key",
            Kind.BOOLEAN,
            False,
            "Whether to drop them from the key too.",
            title="Specifies whether the fields to be dropped should also be omitted from the key",
            width=Width.SHORT,
        ),
        _key(
            "drop.fields.keep.schema.compatible",
            Kind.BOOLEAN,
            True,
            "Whether to drop optional fields only.",
            title="Specifies if fields are dropped, will the event's schemas be compatible",
            width=Width.SHORT,
        ),
        FILLS_KEY,
        _key(
            OLD_TOMBSTONES,
            Kind.BOOLEAN,
            None,
            f"Key of older versions: whether to drop tombstones. Use {MODE}.",
            title="Drop tombstones (older versions)",
            width=Width.SHORT,
        ),
        _key(
            OLD_DELETES,
            Kind.STRING,
            None,
            f"Key of older versions: drop, rewrite or none for deletes. Use {MODE}.",
            title="Handle delete records (older versions)",
            width=Width.MEDIUM,
            check=_check_old_deletes,
        ),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    """A field of the event, and its name in the result."""

    struct: str | None
    field: str
    name: str

    def schema(self, envelope: Schema) -> Schema | None:
        """Return its schema, optional and without a default; None if there is no such field."""
        found = self._inner(envelope).field(self.field) or envelope.field(self.field)
        if found is None:
            return None
        return replace(found.schema, is_optional=True, default=None, has_default=False)

    def value(self, event: Struct) -> Any:
        inner = event if self.struct is None else event[self.struct]
        if inner is None:
            return None
        has_field = inner.schema.field(self.field) is not None
        return inner[self.field] if has_field else event[self.field]

    def _inner(self, envelope: Schema) -> Schema:
        if self.struct is None:
            return envelope
        found = envelope.field(self.struct)
        if found is None:
            raise unknown(self.struct)
        return found.schema


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unwrapping:
    """A parsed config."""

    deletes: Deletes
    keeps_truncations: bool
    route: str
    fields: tuple[_Reference, ...]
    headers: tuple[_Reference, ...]
    drop_header: str
    drops_from_key: bool
    keeps_required: bool


def build(parsed: Mapping[str, Any]) -> Apply:
    wanted = _Unwrapping(
        deletes=_deletes(parsed),
        keeps_truncations=parsed[TRUNCATIONS] == KEEP,
        route=parsed[ROUTE] or "",
        fields=_references(parsed["add.fields"], parsed["add.fields.prefix"]),
        headers=_references(parsed["add.headers"], parsed["add.headers.prefix"]),
        drop_header=(parsed["drop.fields.header.name"] or "").strip(),
        drops_from_key=parsed["drop.fields.from.key"],
        keeps_required=parsed["drop.fields.keep.schema.compatible"],
    )
    marks = {text: _mark(text, fills=parsed[FILLS]) for text in ("true", "false")}
    added = Derived(lambda schema: _Adding(wanted.fields, schema))

    def apply(record: Record) -> Record | None:
        if record.value is None:
            keeps = wanted.deletes is Deletes.REWRITE_WITH_TOMBSTONE
            return _told_tombstone(wanted, record) if keeps else None
        if record.value_schema is None or not (record.value_schema.name or "").endswith(ENVELOPE):
            return record
        event = struct_of(record.value, "record unwrapping")
        told = replace(record, headers=(*record.headers, *_headers(wanted.headers, event)))
        if (after := event["after"]) is not None:
            return _told_row(wanted, marks["false"], added, told, after)
        if (before := event["before"]) is not None:
            return _told_deletion(wanted, marks["true"], added, told, before)
        # A truncation, which has no row.
        return told if wanted.keeps_truncations else None

    return apply


class _Adding:
    """Adds fields of events to their rows, for one schema."""

    def __init__(self, references: tuple[_Reference, ...], envelope: Schema) -> None:
        found = ((one, one.schema(envelope)) for one in references)
        self._told = tuple((one, schema) for one, schema in found if schema is not None)
        fields = tuple(Field(name=one.name, schema=schema) for one, schema in self._told)
        self._derived = Derived(lambda row: with_fields(row, (*row.fields, *fields)))

    def __call__(self, record: Record, event: Struct) -> Record:
        row = struct_of(record.value, "source field insertion")
        schema = self._derived(row.schema)
        added = {one.name: one.value(event) for one, _ in self._told}
        value = Struct(schema, {**row.values, **added})
        return replace(record, value_schema=schema, value=value)


def _told_tombstone(wanted: _Unwrapping, record: Record) -> Record:
    """Return a tombstone with the only header it can have: that of a delete."""
    headers = [
        Header(name=one.name, value="d", schema=STRING)
        for one in wanted.headers
        if one.field == "op"
    ]
    return replace(record, headers=(*record.headers, *headers)) if headers else record


def _told_row(
    wanted: _Unwrapping, mark: Apply, added: Derived[_Adding], record: Record, row: Struct
) -> Record | None:
    event = record.value
    told = replace(record, value_schema=row.schema, value=row)
    if wanted.deletes in REWRITES:
        told = _applied(mark, told)
    told = _routed(wanted, told, row)
    return _dropped(wanted, added(event.schema)(told, event))


def _told_deletion(
    wanted: _Unwrapping, mark: Apply, added: Derived[_Adding], record: Record, row: Struct
) -> Record | None:
    event = record.value
    if wanted.deletes is Deletes.DROP:
        return None
    if wanted.deletes in REWRITES:
        told = _applied(mark, replace(record, value_schema=row.schema, value=row))
    else:
        keeps_schema = wanted.deletes is Deletes.TOMBSTONE
        schema = record.value_schema.field("after") if record.value_schema else None
        kept = schema.schema if schema is not None and keeps_schema else None
        told = replace(record, value_schema=kept, value=None)
    told = _dropped(wanted, _routed(wanted, told, row))
    return told if told.value is None else added(event.schema)(told, event)


def _deletes(parsed: Mapping[str, Any]) -> Deletes:
    drops, mode = parsed[OLD_TOMBSTONES], parsed[OLD_DELETES]
    if drops is None and mode is None:
        return Deletes(parsed[MODE])
    if parsed[MODE] != Deletes.TOMBSTONE.value:
        old = OLD_TOMBSTONES if mode is None else OLD_DELETES
        raise ConfigError(f"{MODE} and {old} are alternatives: leave {old} out")
    return OLD_MODES[drops is not False, mode or "drop"]


def _references(told: list[str], prefix: str) -> tuple[_Reference, ...]:
    return tuple(_reference(one, prefix) for one in told if one)


def _reference(told: str, prefix: str) -> _Reference:
    place, colon, name = told.partition(":")
    if ":" in name or (colon and not name):
        raise ConfigError(f"Unexpected field name: {told}")
    first, dot, rest = place.partition(".")
    field = rest.partition(".")[0] if dot else first
    struct = first if dot else STRUCTS.get(field, "source")
    named = name or (f"{struct}_{field}" if dot else field)
    return _Reference(struct=struct, field=field, name=prefix + named)


def _headers(references: tuple[_Reference, ...], event: Struct) -> list[Header]:
    found = []
    for one in references:
        schema = one.schema(event.schema)
        if schema is not None:
            found.append(Header(name=one.name, value=one.value(event), schema=schema))
    return found


def _mark(text: str, *, fills: bool) -> Apply:
    inserted = dict.fromkeys(insert_field.KEYS.by_name)
    static = {"static.field": DELETED, "static.value": text, FILLS: fills}
    return insert_field.build(inserted | static, Side.VALUE)


def _routed(wanted: _Unwrapping, record: Record, row: Struct) -> Record:
    if not wanted.route:
        return record
    field = row.schema.field(wanted.route)
    if field is None:
        raise unknown(wanted.route)
    if field.schema.type is not Type.STRING:
        raise DataError(f"Field '{wanted.route}' is not of type STRING, as a topic name must be")
    topic = row[wanted.route]
    return replace(record, topic=topic) if topic and topic.strip() else record


def _dropped(wanted: _Unwrapping, record: Record) -> Record:
    """Drop the fields that a header names."""
    if not wanted.drop_header:
        return record
    named = next((one for one in record.headers if one.name == wanted.drop_header), None)
    if named is None or named.value is None:
        return record
    if not isinstance(named.value, list):
        raise DataError(f"header {wanted.drop_header} is not a list of fields")
    if wanted.drops_from_key and record.key is not None:
        record = _without(Side.KEY, wanted, record, named.value)
    return _without(Side.VALUE, wanted, record, named.value)


def _without(side: Side, wanted: _Unwrapping, record: Record, names: list[Any]) -> Record:
    schema, _ = side.read(record)
    if schema is None:
        return record
    dropped = tuple(names)
    if wanted.keeps_required:
        fields = schema.fields
        dropped = tuple(one.name for one in fields if one.schema.is_optional and one.name in names)
    return _applied(_dropping(side, dropped), record) if dropped else record


@lru_cache(maxsize=MAX_KEPT)
def _dropping(side: Side, names: tuple[str, ...]) -> Apply:
    parsed = {"exclude": list(names), "include": [], "renames": [], FILLS: True}
    return replace_field.build(parsed, side)


def _applied(apply: Apply, record: Record) -> Record:
    made = apply(record)
    assert made is not None, "a change of fields drops no record"
    return made
