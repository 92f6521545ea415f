"""Prepares a config for a form: its fields, their errors, and the topics and files that it uses.

Nothing is changed here. Typed passwords are sealed between two pages, so that no page ever shows
one.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from brokers import quantities
from brokers.quantities import BadQuantity, Unit
from connectors import framework_keys as keys
from connectors import needed_rights, registry, selectors, validation
from connectors.changes import difference
from connectors.combinations import NO_TOPICS, NOT_OF_JOBS
from connectors.references import has_reference
from connectors.refusals import Unfit
from connectors.sdk.checks import OneOf, missing, to_text
from connectors.sdk.configs import MASK, REQUIRED, Key, Kind
from connectors.sdk.connector import Connector
from connectors.validation import Entry, Validation
from connectors.vault import CannotOpen, Opened, Place, is_reference, is_sealed
from gateway.access.callers import Caller
from gateway.access.operations import Kind as Resource
from gateway.access.operations import Operation

CLASS: Final = keys.CLASS
NAME: Final = keys.NAME
# The prefix of the user's name in the place of a connector's name, which has no NUL.
OF_FORM: Final = "\0form of "
NUMBERS: Final = frozenset({"SHORT", "INT", "LONG", "DOUBLE"})
# What a connector does to topics and files, by the right that its author needs.
VERBS: Final[Mapping[Operation, str]] = {
    Operation.PRODUCE: "write into",
    Operation.READ_PAYLOADS: "read",
    Operation.CREATE_TOPICS: "create",
    Operation.READ_FILES: "read",
    Operation.WRITE_FILES: "write",
}
# Keys that the form of a job omits: a job has one task, and an engine without steps.
USELESS_FOR_JOBS: Final = (keys.TASKS_MAX, *NOT_OF_JOBS)
# About the width of a field with one line.
LONG_CHARS: Final = 90
ANOTHER: Final = "{}, another one"
# The beginning of the keys of a transform, a predicate or a converter, whose section names it.
OF_PART: Final = re.compile(r"(transforms|predicates)\.[^.]+\.|(key|value|header)\.converter\.")
UNIT_WORDS: Final = frozenset({"ms"})
# Parts of keys that are not written as words.
ACRONYMS: Final[Mapping[str, str]] = {
    **{word: word.upper() for word in ("url", "http", "s3", "sql", "ssl", "id", "acl", "kms")},
    **{word: word.upper() for word in ("aws", "sse", "pk", "lsn", "dlq", "utc", "json", "db")},
    "regex": "pattern",
    "max": "maximum",
    "min": "minimum",
    "num": "number of",
}
# Replaces Kafka's message for a key without a value, which repeats the key.
NO_VALUE: Final = "It has no default: give a value."


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A key in a form. Secrets have no value here, except for references."""

    name: str
    label: str
    kind: str
    group: str
    doc: str
    default: str
    value: str
    errors: tuple[str, ...]
    recommended: tuple[str, ...]
    # All allowed values, if they are a few words.
    choices: tuple[str, ...]
    is_high: bool
    is_required: bool
    is_missing: bool
    is_secret: bool
    # A secret that was typed before, or is stored, and is not displayed.
    is_held: bool
    is_visible: bool
    example: str = ""
    has_lines: bool = False
    # What its number counts, in which users may write it; its value and its default in words.
    unit: Unit | None = None
    words: str = ""
    default_words: str = ""

    @property
    def is_size(self) -> bool:
        return self.unit is Unit.BYTES

    @property
    def is_number(self) -> bool:
        return self.kind in NUMBERS

    @property
    def is_long(self) -> bool:
        """Return whether its value needs more than one line, which would lose line breaks."""
        return self.has_lines or "\n" in self.value or len(self.value) > LONG_CHARS


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """Topics or files that a config uses: a name, a prefix followed by `*`, or `*` for all."""

    verb: str
    kind: str
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A config that is being edited. `config` has masks in the place of secrets."""

    plugin: str
    title: str
    kind: str
    missing: str  # why the plugin cannot run here
    extra: str  # what would bring what it lacks
    name: str
    config: Mapping[str, str]
    fields: tuple[Field, ...]
    # Keys that the plugin does not define, and those that are empty.
    others: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    leads: tuple[Lead, ...]
    refusal: str  # what is wrong with no single key
    # Secret and partly secret values, masked.
    hidden: Mapping[str, str] = field(repr=False)

    @property
    def class_name(self) -> str:
        """Return the class named by the config, perhaps by an alias."""
        return self.config.get(CLASS, "").strip() or self.plugin

    @property
    def whole_errors(self) -> tuple[str, ...]:
        """Return the errors of the whole config; they belong to the class, which has no field."""
        return next((field.errors for field in self.fields if field.name == CLASS), ())

    @property
    def errors(self) -> int:
        """Return the number of invalid or missing keys."""
        return sum(bool(field.errors) for field in self.fields)

    @property
    def wrong_fields(self) -> int:
        """Return the number of these that a form shows: the class has no field."""
        return self.errors - bool(self.whole_errors)

    @property
    def missing_keys(self) -> int:
        return sum(field.is_missing for field in self.fields)

    @property
    def is_fit(self) -> bool:
        return not self.errors and not self.refusal


def look(
    caller: Caller,
    cluster: str,
    config: Mapping[str, str],
    *,
    plugin: str,
    stored_of: str | None = None,
    is_deep: bool = False,
) -> Draft:
    """Return a config for a form. Unfit if neither it nor `plugin` names a connector.

    A field keeps a size or a duration as it was typed; everything else has the plain number.
    Pass `stored_of` only if the caller may alter that connector: masks mean its stored values.
    """
    typed, config = config, plain_config(config, plugin=plugin)
    found = registry.find(config.get(CLASS, "").strip())
    wrong_class = ""
    if found is None:
        found = selectors.plugin_of(plugin)
        try:
            selectors.plugin_of(selectors.class_in(config))
        except Unfit as error:
            wrong_class = str(error)
    judged = selectors.validate(
        caller, cluster, found, config, stored_of=stored_of, is_deep=is_deep
    )
    hidden = {**dict.fromkeys(judged.secret_keys, MASK), **judged.partly}
    shown = masked(config, hidden)
    fields = tuple(_field(entry, config, judged, typed) for entry in _in_order(judged))
    known = {field.name for field in fields}
    lacks = registry.missing(found)
    refusal = wrong_class or _refusal(caller, cluster, found, config, judged, stored_of)
    return Draft(
        plugin=found.name,
        title=found.title,
        kind=registry.kind_of(found),
        missing=lacks.reason if lacks else "",
        extra=lacks.extra if lacks else "",
        name=config.get(NAME, "").strip(),
        config=shown,
        fields=fields,
        others=tuple((key, text) for key, text in shown.items() if key not in known or not text),
        warnings=tuple(judged.warnings.values()),
        leads=leads(found, config),
        refusal=refusal,
        hidden=hidden,
    )


def plain_config(config: Mapping[str, str], *, plugin: str) -> dict[str, str]:
    """Return a typed config with sizes and durations as plain numbers; other texts stay."""
    found = registry.find(config.get(CLASS, "").strip()) or registry.find(plugin)
    known = {} if found is None else {e.key.name: e.key for e in validation.definitions(found)}
    return {name: _plain(known.get(name), name, text) for name, text in config.items()}


def _plain(key: Key | None, name: str, text: str) -> str:
    if has_reference(text) or (key is not None and key.kind.value not in NUMBERS):
        return text
    try:
        if key is not None and key.unit:
            return quantities.number(Unit(key.unit), text)
        return quantities.plain(name, text)
    except BadQuantity:
        # Validation refuses it by its key.
        return text


def _unit(key: Key) -> Unit | None:
    if key.kind.value not in NUMBERS:
        return None
    return Unit(key.unit) if key.unit else quantities.unit_of(key.name)


def leads(plugin: type[Connector], config: Mapping[str, str]) -> tuple[Lead, ...]:
    """Return the topics and files that a connector of this config can read and write."""
    found = needed_rights.needs(plugin, config)
    return tuple(
        dict.fromkeys(
            Lead(verb=VERBS[need.operation], kind=need.kind.value, pattern=need.pattern)
            for need in found
        )
    )


def masked(config: Mapping[str, str], hidden: Mapping[str, str]) -> dict[str, str]:
    """Return a config for display; references are not masked."""
    return {
        key: text if is_reference(text) else hidden.get(key, text)
        for key, text in sorted(config.items())
    }


def shown_of(text: str) -> str:
    """Return a value for display; a sealed one is masked."""
    return text.shown if isinstance(text, Opened) else text


def changed(
    former: Mapping[str, str], draft: Draft, config: Mapping[str, str]
) -> list[tuple[str, str | None, str | None]]:
    """Return the changes of a draft: key, before, after; None for an unset key."""
    was, now = difference(former, draft.config)
    for key, shown in draft.hidden.items():
        if former.get(key) == shown == draft.config.get(key) and config[key].strip() != shown:
            was[key], now[key] = shown, ANOTHER.format(shown)
    return [(key, was.get(key), now.get(key)) for key in sorted({*was, *now})]


def seal(cluster: str, user: str, config: Mapping[str, str], hidden: Mapping[str, str]) -> str:
    """Return a config sealed for a page, which only the same user can use."""
    clear = {
        key: shown
        for key, shown in hidden.items()
        if key in config and config[key].strip() != shown
    }
    whole = [key for key, shown in clear.items() if shown == MASK]
    partly = {key: shown for key, shown in clear.items() if shown != MASK}
    place = _place(cluster, user)
    return json.dumps(selectors.vault().seal(config, whole, place, partly=partly))


def unseal(cluster: str, user: str, text: str) -> dict[str, str]:
    """Open the output of `seal`; Unfit for any other text."""
    if not text:
        return {}
    try:
        found = json.loads(text)
        if _is_stored(found):
            return selectors.vault().open(found, _place(cluster, user))
    except (ValueError, RecursionError, CannotOpen):
        pass
    raise Unfit("the earlier input can no longer be read: fill in the passwords again")


def _is_stored(found: object) -> bool:
    if not isinstance(found, dict):
        return False
    return all(isinstance(value, str) or is_sealed(value) for value in found.values())


def _place(cluster: str, user: str) -> Place:
    return Place(cluster=cluster, connector=f"{OF_FORM}{user}")


def _in_order(judged: Validation) -> list[Entry]:
    """Return entries by group: common ones, then the connector's own, then the rest.

    Within a group they keep the order of their definition.
    """
    own = {key.name for key in judged.plugin.definition()}
    groups = {entry.group for entry in judged.entries if entry.key.name in own}

    def rank(entry: Entry) -> int:
        if entry.group == keys.GROUP_COMMON:
            return 0
        return 1 if entry.group in groups else 2

    return sorted(judged.entries, key=rank)


def _field(
    entry: Entry, config: Mapping[str, str], judged: Validation, typed: Mapping[str, str]
) -> Field:
    key, text = entry.key, config.get(entry.key.name, "")
    unit = _unit(key)
    is_secret = key.kind is Kind.PASSWORD or key.name in judged.secret_keys
    is_shown = not is_secret or is_reference(text)
    is_useless = _is_useless(judged.plugin, key.name)
    # A key without a field is not missing: `topics` reports a missing topic.
    errors = () if is_useless and not text else entry.value.errors
    default: Any = None if key.default is REQUIRED else key.default
    return Field(
        name=key.name,
        label=_label(key),
        kind=key.kind.value,
        group=entry.group or "Other",
        doc=key.doc,
        default=to_text(key, default) or "",
        value=judged.partly.get(key.name, typed.get(key.name, "")) if is_shown else "",
        errors=_told(key, errors),
        recommended=tuple(str(one) for one in entry.value.recommended),
        choices=_choices(key),
        is_high=key.importance.value == "HIGH",
        is_required=key.is_required,
        is_missing=not {missing(key), NO_TOPICS}.isdisjoint(errors),
        is_secret=is_secret,
        is_held=bool(text) and not is_shown,
        is_visible=entry.value.is_visible and not is_useless,
        example=key.example,
        has_lines=key.has_lines,
        unit=unit,
        words=_words(unit, text),
        default_words=_words(unit, to_text(key, default) or ""),
    )


def _label(key: Key) -> str:
    """Return the name of a field: the key's own, or else its last words, as in a sentence."""
    # Validation fills in the key where a definition has no name for it.
    if key.display_name and key.display_name != key.name:
        return key.display_name
    name = OF_PART.sub("", key.name)
    parts = [ACRONYMS.get(part, part) for part in re.split(r"[._]", name) if part]
    # The unit is in the help; a part with a name of its own stays whole.
    if len(parts) > 1 and parts[-1] in UNIT_WORDS:
        parts.pop()
    told = " ".join(parts)
    return told[:1].upper() + told[1:]


def _words(unit: Unit | None, text: str) -> str:
    if unit is None or not quantities.is_number(text):
        return ""
    return quantities.words_of(unit, int(text))


def _is_useless(plugin: type[Connector], name: str) -> bool:
    """Return whether a connector refuses a key of the framework, or does not use it."""
    if name in plugin.refused:
        return True
    return registry.is_job(plugin) and any(
        name == one or name.startswith(f"{one}.") for one in USELESS_FOR_JOBS
    )


def _choices(key: Key) -> tuple[str, ...]:
    if not isinstance(key.check, OneOf):
        return ()
    return tuple(word for word in key.check.words if word)


def _told(key: Key, errors: tuple[str, ...]) -> tuple[str, ...]:
    """Drop Kafka's additional error for an unparseable value, that it is null."""
    of_nothing = f"Invalid value null for configuration {key.name}:"
    told = tuple(error for error in errors if not error.startswith(of_nothing)) or errors
    return tuple(NO_VALUE if error == missing(key) else error for error in told)


def _refusal(
    caller: Caller,
    cluster: str,
    plugin: type[Connector],
    config: Mapping[str, str],
    judged: Validation,
    stored_of: str | None,
) -> str:
    """Return why a valid config would be refused; nothing for an invalid one."""
    if not judged.is_valid:
        return ""
    name = config.get(NAME, "").strip()
    operation = Operation.CREATE_CONNECTORS if stored_of is None else Operation.ALTER_CONNECTORS
    decision = caller.decide(operation, Resource.CONNECTOR, cluster, name)
    if not decision.is_allowed:
        return decision.reason
    lacking = needed_rights.missing_right(caller, cluster, plugin, config)
    if lacking is not None:
        return lacking
    if stored_of is None and selectors.find_row(cluster, name) is not None:
        return f"Connector {name} already exists: give another name, or edit that one"
    return ""
