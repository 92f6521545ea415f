"""Validates a whole config: each key by its definition, and combinations of keys.

The answer is Kafka Connect's: every key with its definition, its value and its errors. References
to secrets stay as they are written; only a worker knows their values, so they are not validated
here.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from connectors import framework_keys as keys
from connectors import registry
from connectors.combinations import found_doubtful, found_wrong
from connectors.components import Added, Classes, Components, added, chains, converters_for
from connectors.references import Allowed, has_reference, refused_reference
from connectors.runtime.masking import masked
from connectors.sdk import checks
from connectors.sdk.configs import MASK, REQUIRED, Importance, Key, Kind, Span, Value
from connectors.sdk.connector import Connector
from connectors.sdk.errors import ConnectorError
from connectors.sdk.secret_parts import of_urls, secrets, shown
from connectors.vault import revealed

# The longest published configs have about two hundred keys.
MAX_KEYS: Final = 2000
MAX_NAME_CHARS: Final = 1000
# Unknown keys for which a similar one is searched, which takes a millisecond each.
MAX_HINTS: Final = 20
OF_CONVERTERS: Final = tuple(f"{prefix}." for prefix in keys.CONVERTERS)
NOTHING_ALLOWED: Final = Allowed()
# Returns why connectors may not reach a host, or None.
Judge: TypeAlias = Callable[[str, int], str | None]
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
# Names of undefined keys to mask: better without need than not at all.
LOOKS_SECRET: Final = ("password", "secret", "token", "credential", "private.key", "jaas", "apikey")
NOT_STORED: Final = "This is the mask of a stored value, but none is stored: give the value itself"
NOT_AS_STORED: Final = (
    "it contains the mask of a stored part, which is kept only if the rest of the value is"
    " unchanged: give the part itself"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A key with its validated value."""

    key: Key
    value: Value
    group: str | None
    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The validation of a config. `warnings`, by key, are ours: Kafka Connect has none."""

    plugin: type[Connector]
    groups: tuple[str, ...]
    entries: tuple[Entry, ...]
    warnings: Mapping[str, str] = field(default_factory=dict)
    # The connector's own keys, parsed; without those that refer to a secret.
    parsed: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secret_keys: frozenset[str] = frozenset()
    # Partly secret values, masked.
    partly: Mapping[str, str] = field(default_factory=dict)

    @property
    def errors(self) -> list[str]:
        return [error for entry in self.entries for error in entry.value.errors]

    @property
    def is_valid(self) -> bool:
        return not self.errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A key to validate, before its value is known."""

    key: Key
    # The key as defined by its part; errors of its check have this name, and for converters those
    # of its parsing, too.
    inner: Key
    group: str | None
    order: int
    is_own: bool = False
    implied: str | None = None


def validate(
    plugin: type[Connector],
    config: Mapping[str, str],
    *,
    components: Components,
    allowed: Allowed = NOTHING_ALLOWED,
    refused: Mapping[str, str] = NOTHING,
    target_judge: Judge | None = None,
    is_deep: bool = False,
) -> Validation:
    """Return the validation of a config.

    `refused` has the caller's errors by key; without a judge, targets are not looked at. A deep
    validation lets a built-in connector query the other side too, which takes up to 5 s.
    """
    asked = list(_asked(plugin, config, components))
    kept = {one.key.name: one for one in asked}
    parsed: dict[str, Any] = {}
    errors: dict[str, list[str]] = {name: [] for name in kept}
    for one in asked:
        _take(one, config, parsed, errors, allowed)
    for name, reason in refused.items():
        errors[name] = [reason]
    for name, wrong in _about_parts(plugin, config, components):
        errors.setdefault(name, []).append(wrong)
    for name, wrong in found_wrong(_rules_of(plugin), config, parsed):
        errors.setdefault(name, []).append(wrong)
    own = {
        one.key.name: parsed[one.key.name] for one in asked if one.is_own and one.key.name in parsed
    }
    if target_judge is not None:
        for name, wrong in _bad_targets(asked, own, target_judge):
            errors[name] = errors[name] or [wrong]
    advice: dict[str, Value] = {}
    if is_deep and _may_ask(plugin, config, errors):
        topics = {keys.TOPICS: parsed[keys.TOPICS]} if keys.TOPICS in parsed else {}
        advice = _deep(plugin, {**topics, **own}, errors)
    # An undefined key with errors gets an entry too.
    asked += [_unknown(name) for name in errors if name not in kept]
    known = {name: one.key for name, one in kept.items()}
    partly = partly_secret(config, known)
    _hide_parts(errors, config, known)
    entries = tuple(
        _entry(one, {**config, **partly}, parsed, errors, advice, components, own) for one in asked
    )
    return Validation(
        plugin=plugin,
        groups=tuple(dict.fromkeys(one.group for one in entries if one.group is not None)),
        entries=entries,
        warnings=dict(_warnings(plugin, config, kept)),
        parsed=own,
        secret_keys=secret_keys(config, known),
        partly=partly,
    )


def warnings_of(
    plugin: type[Connector], config: Mapping[str, str], *, components: Components
) -> Mapping[str, str]:
    """Return what has no effect in a config, by key, each with what to do."""
    known = {one.key.name for one in _asked(plugin, config, components)}
    return dict(_warnings(plugin, config, known))


def definitions(plugin: type[Connector]) -> list[Entry]:
    """Return the keys of a connector without a config: its own, and common ones."""
    nothing = Components(converters={}, header_converters={}, transforms={}, predicates={})
    asked = sorted(_asked(plugin, {}, nothing), key=lambda one: not one.is_own)
    return [
        Entry(
            key=one.key,
            value=Value(name=one.key.name, value=None),
            group=one.group,
            order=one.order,
        )
        for one in asked
    ]


def secret_keys(config: Mapping[str, str], known: Mapping[str, Key]) -> frozenset[str]:
    """Return the keys whose values must not be displayed."""
    return frozenset(
        name
        for name in config
        if (
            known[name].kind is Kind.PASSWORD
            if name in known
            else any(word in name.lower() for word in LOOKS_SECRET)
        )
    )


def partly_secret(config: Mapping[str, str], known: Mapping[str, Key]) -> dict[str, str]:
    """Return partly secret values, masked."""
    hidden = secret_keys(config, known)
    found = {
        name: shown(revealed(text), _spans(name, config, known))
        for name, text in config.items()
        if name not in hidden
    }
    return {name: text for name, text in found.items() if text != revealed(config[name])}


def secrets_within(config: Mapping[str, str], known: Mapping[str, Key]) -> dict[str, list[str]]:
    """Return the secret parts of values, by key."""
    hidden = secret_keys(config, known)
    found = {
        name: list(secrets(revealed(text), _spans(name, config, known)))
        for name, text in config.items()
        if name not in hidden
    }
    return {name: parts for name, parts in found.items() if parts}


def _spans(name: str, config: Mapping[str, str], known: Mapping[str, Key]) -> Iterator[Span]:
    text = revealed(config[name])
    yield from of_urls(text)
    of_key = known[name].secret_parts if name in known else None
    if of_key is not None:
        yield from of_key(text, config)


def _hide_parts(
    errors: dict[str, list[str]], config: Mapping[str, str], known: Mapping[str, Key]
) -> None:
    """Mask secrets within values in messages, and refuse masks without a stored value."""
    found = secrets_within(config, known)
    hidden = {part for parts in found.values() for part in parts} - {MASK}
    for name, said in errors.items():
        errors[name] = [masked(error, hidden) for error in said]
    for name, parts in found.items():
        if MASK in parts:
            told = f"Invalid value for configuration {name}: {NOT_AS_STORED}"
            errors.setdefault(name, []).append(told)


def _asked(
    plugin: type[Connector], config: Mapping[str, str], components: Components
) -> Iterator[Asked]:
    kind = registry.kind_of(plugin)
    taken = set()
    for placed in keys.BY_KIND[kind]:
        taken.add(placed.key.name)
        yield Asked(key=placed.key, inner=placed.key, group=placed.key.group, order=placed.order)
    for part in _parts(kind, config, components):
        if part.key.name not in taken:
            taken.add(part.key.name)
            yield Asked(
                key=part.key,
                inner=part.inner,
                group=part.group,
                order=part.order,
                implied=part.implied,
            )
    orders: dict[str | None, int] = {}
    for key in plugin.definition():
        if key.name in taken or key.is_internal:
            continue
        orders[key.group] = orders.get(key.group, 0) + 1
        order = -1 if key.group is None else orders[key.group]
        yield Asked(key=key, inner=key, group=key.group, order=order, is_own=True)


def _parts(kind: str, config: Mapping[str, str], components: Components) -> Iterator[Added]:
    yield from added(config, components)
    if kind != "source" or not any(name.startswith(keys.TOPIC_CREATION) for name in config):
        return
    groups = [keys.DEFAULT_GROUP, *str(config.get(keys.TOPIC_GROUPS, "")).split(",")]
    named = list(dict.fromkeys(group.strip() for group in groups if group.strip()))
    for group in named[: keys.MAX_ALIASES + 1]:
        for order, key in enumerate(keys.topic_group(group), 1):
            yield Added(key=key, inner=key, group=key.group, order=order)


def _take(
    one: Asked,
    config: Mapping[str, str],
    parsed: dict[str, Any],
    errors: dict[str, list[str]],
    allowed: Allowed,
) -> None:
    """Parse and check one key like Kafka, which checks null if parsing fails."""
    name = one.key.name
    text = config.get(name, one.implied)
    if text is not None and has_reference(text):
        wrong = refused_reference(text, allowed)
        if wrong is not None:
            errors[name].append(checks.problem(one.key, text, wrong))
        return
    value: Any = None
    if name in config or text is not None:
        try:
            is_converters = name.startswith(OF_CONVERTERS)
            value = checks.parse(one.inner if is_converters else one.key, text)
        except checks.InvalidValue as error:
            errors[name].append(str(error))
    elif one.key.default is REQUIRED:
        errors[name].append(checks.missing(one.key))
    else:
        value = checks.default_of(one.key)
    is_masked = one.key.kind is Kind.PASSWORD and text is not None and text.strip() == MASK
    if is_masked:
        errors[name].append(checks.problem(one.key, text, NOT_STORED))
    elif (wrong := checks.check(one.inner, value)) is not None:
        errors[name].append(wrong)
    parsed[name] = value


def _about_parts(
    plugin: type[Connector], config: Mapping[str, str], components: Components
) -> Iterator[tuple[str, str]]:
    """Yield errors of classes, and of keys that are refused by name."""
    if (missing := registry.missing(plugin)) is not None:
        yield keys.CLASS, missing.reason
    for chained in chains(components):
        for name in config:
            head, _, last = name.rpartition(".")
            if last == "type" and head.rpartition(".")[0] == chained.prefix:
                yield from _no_class(name, config[name], chained.classes)
    for prefix in keys.CONVERTERS:
        if prefix in config:
            yield from _no_class(prefix, config[prefix], converters_for(prefix, components))
    for name, problem in components.problems(config):
        # Only a worker knows the value of a reference.
        prefix = f"{name.removesuffix('.type')}."
        if not any(has_reference(text) for key, text in config.items() if key.startswith(prefix)):
            yield name, problem
    for name in config:
        if (wrong := keys.refused_override(name)) is not None:
            yield name, wrong
        elif (reason := plugin.refused.get(name)) is not None:
            yield name, f"Configuration {name} is not served by {plugin.name}: {reason}"


def _bad_targets(
    asked: list[Asked], own: Mapping[str, Any], judge: Judge
) -> Iterator[tuple[str, str]]:
    """Yield errors of keys that name a server which connectors may not reach."""
    for one in asked:
        if one.key.targets is None or one.key.name not in own:
            continue
        value = own[one.key.name]
        try:
            found = list(one.key.targets(value, own))
        # Any error of a plugin: the value is wrong, as its check says.
        except Exception:  # noqa: BLE001, S112
            continue
        refusals = (refusal for host, port in found if (refusal := judge(host, port)))
        for refusal in refusals:
            yield one.key.name, checks.problem(one.key, value, refusal)


def _no_class(name: str, text: str, classes: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    if has_reference(text) or text.strip() in classes:
        return
    yield (
        name,
        (
            f"Invalid value {checks.show(text)} for configuration {name}: "
            f"Class {checks.show(text)} could not be found."
        ),
    )


def _may_ask(
    plugin: type[Connector], config: Mapping[str, str], errors: Mapping[str, list[str]]
) -> bool:
    """Return whether the connector's own check may run: it is built in, and the config valid."""
    is_whole = not any(has_reference(text) for text in config.values())
    return is_whole and not registry.is_foreign(plugin) and not any(errors.values())


def _deep(
    plugin: type[Connector], own: Mapping[str, Any], errors: dict[str, list[str]]
) -> dict[str, Value]:
    try:
        found = plugin().validate(own)
    except ConnectorError as error:
        errors[keys.CLASS].append(str(error))
        return {}
    except Exception as error:  # noqa: BLE001 - a connector that fails must not end a request
        # Only the class of a foreign library's error: its text may contain the config.
        failed = f"{plugin.name} could not check its config: {type(error).__name__}"
        errors[keys.CLASS].append(failed)
        return {}
    for value in found:
        errors.setdefault(value.name, []).extend(value.errors)
    return {value.name: value for value in found}


def _entry(
    one: Asked,
    config: Mapping[str, str],
    parsed: Mapping[str, Any],
    errors: Mapping[str, list[str]],
    advice: Mapping[str, Value],
    components: Components,
    own: Mapping[str, Any],
) -> Entry:
    name, key = one.key.name, one.key
    said = advice.get(name)
    recommended = said.recommended if said else ()
    if not recommended:
        recommended = _recommended(one, components, own if one.is_own else parsed)
    is_visible = said.is_visible if said else key.visible is None or bool(key.visible(own))
    shown: Any = _full(one, parsed.get(name), components)
    if name in config and has_reference(config[name]):
        shown = config[name]
    return Entry(
        key=key if key.display_name else replace(key, display_name=name),
        value=Value(
            name=name,
            value=checks.to_text(key, shown),
            recommended=tuple(recommended),
            errors=tuple(errors[name]),
            is_visible=is_visible,
        ),
        group=one.group,
        order=one.order,
    )


def _full(one: Asked, value: Any, components: Components) -> Any:
    """Return the full name of a class that a value abbreviates; None if there is none."""
    classes = _classes_for(one, components)
    if classes is None or value is None:
        return value
    found = classes.get(value)
    if found is None:
        return None
    return max((name for name in classes if classes[name] is found), key=len)


def _classes_for(one: Asked, components: Components) -> Classes | None:
    name = one.key.name
    if name in keys.CONVERTERS:
        return converters_for(name, components)
    for chained in chains(components):
        if one.inner.name == "type" and name.startswith(f"{chained.prefix}."):
            return chained.classes
    return None


def _recommended(one: Asked, components: Components, values: Mapping[str, Any]) -> tuple[Any, ...]:
    classes = _classes_for(one, components)
    if classes is not None:
        return tuple(full_names(classes))
    if one.key.recommend is None:
        return ()
    return tuple(checks.show(value) for value in one.key.recommend(values))


def full_names(classes: Mapping[str, object]) -> list[str]:
    """Return the longest name of each class, which is Java's if there is one."""
    best: dict[int, str] = {}
    for name, found in classes.items():
        if len(name) > len(best.get(id(found), "")):
            best[id(found)] = name
    return sorted(best.values())


def _rules_of(plugin: type[Connector]) -> str:
    return "job" if registry.is_job(plugin) else registry.kind_of(plugin)


def _warnings(
    plugin: type[Connector], config: Mapping[str, str], known: Collection[str]
) -> Iterator[tuple[str, str]]:
    hints = 0
    for name in config:
        is_free = name.startswith((*keys.OVERRIDES, keys.TOPIC_CREATION))
        # Keys that are refused have an error.
        if name in known or is_free or name in plugin.refused:
            continue
        hints += 1
        near = get_close_matches(name, known, n=1) if hints <= MAX_HINTS else []
        hint = f"did you mean {near[0]}?" if near else "correct its name, or leave it out"
        yield name, f"{plugin.name} has no config {name}, so it has no effect: {hint}"
    yield from found_doubtful(config)


def undefined(name: str) -> Entry:
    """Return the entry of a key that no part of a config defines."""
    one = _unknown(name)
    return Entry(key=one.key, value=Value(name=name, value=None), group=None, order=one.order)


def _unknown(name: str) -> Asked:
    key = Key(
        name=name,
        kind=Kind.PASSWORD if any(word in name.lower() for word in LOOKS_SECRET) else Kind.STRING,
        default=None,
        importance=Importance.LOW,
        doc="",
    )
    return Asked(key=key, inner=key, group=None, order=-1)
