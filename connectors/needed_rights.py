"""Finds the topics and files that a config reads and writes, and checks its author's rights.

A connector uses the home's own client and opens files as the home's user, so its author could read
and write them without having the rights. Therefore the author needs the rights on all topics and
files that the config can use; if the config does not determine them, on all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from connectors import framework_keys as keys
from connectors import registry
from connectors.components import names_in
from connectors.references import has_reference
from connectors.sdk import checks, home_files
from connectors.sdk.configs import REQUIRED, Files, Key
from connectors.sdk.connector import Connector
from connectors.sdk.errors import ConfigError
from gateway.access.callers import Caller
from gateway.access.grants import ANY, Names
from gateway.access.operations import OPERATIONS, Kind, Operation

# Keys of sources that name the output topic, and those that set a prefix of its name.
WHOLE: Final = ("topic", "kafka.topic", "topic.heartbeat.name")
PREFIXES: Final = ("topic.prefix", "topic.heartbeat.prefix", "heartbeat.topics.prefix")
# A prefix whose default counts too, if another key enables heartbeats, which have a topic.
SWITCHES: Final = {"heartbeat.topics.prefix": "heartbeat.interval.ms"}
# A job's key for its output topic.
OUTPUT: Final = "output.topic"
# A transform key that routes a record to the topic named in its value.
ROUTE_KEY: Final = "route.by.field"
# Transforms that change the topic of a record.
ROUTES: Final = ("Router", "ExtractTopic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One operation on the names of a pattern: a name, a prefix with `*`, or `*`."""

    operation: Operation
    pattern: str

    @property
    def kind(self) -> Kind:
        return kind_of(self.operation)


def kind_of(operation: Operation) -> Kind:
    """Return the kind of the names that a need with an operation is about."""
    [kind] = OPERATIONS[operation].kinds
    return kind


def missing_right(
    caller: Caller, cluster: str, plugin: type[Connector], config: Mapping[str, str]
) -> str | None:
    """Return the missing right for a config, with what to do; None if there is none."""
    for need in needs(plugin, config):
        names = caller.rights.names(need.operation, cluster=cluster, kind=need.kind)
        if not covers(names, need.pattern):
            return _sentence(caller, need)
    return None


def refused(
    caller: Caller, cluster: str, plugin: type[Connector], config: Mapping[str, str]
) -> dict[str, str]:
    """Return the keys that name files which a caller may not use, each with the missing right."""
    found: dict[str, str] = {}
    for key, need in _on_files(plugin, config):
        names = caller.rights.names(need.operation, cluster=cluster, kind=need.kind)
        if not covers(names, need.pattern):
            found.setdefault(key, _sentence(caller, need))
    return found


def needs(plugin: type[Connector], config: Mapping[str, str]) -> Iterator[Need]:
    yield from _on_topics(plugin, config)
    yield from (need for _, need in _on_files(plugin, config))


def _on_topics(plugin: type[Connector], config: Mapping[str, str]) -> Iterator[Need]:
    if registry.kind_of(plugin) == "sink":
        yield from _of_sink(config)
        yield from _of_output(plugin, config)
        return
    for pattern in written(plugin, config):
        yield Need(operation=Operation.PRODUCE, pattern=pattern)
        if any(name.startswith(keys.TOPIC_CREATION) for name in config):
            yield Need(operation=Operation.CREATE_TOPICS, pattern=pattern)


def written(plugin: type[Connector], config: Mapping[str, str]) -> list[str]:
    """Return patterns of the topics that a source can write to."""
    if has_reference(config.get(keys.TRANSFORMS, "")):
        # Only a worker knows the transforms.
        return [ANY]
    for name in names_in(config, keys.TRANSFORMS):
        given = config.get(f"{keys.TRANSFORMS}.{name}.type", "")
        is_routed = bool(config.get(f"{keys.TRANSFORMS}.{name}.{ROUTE_KEY}", "").strip())
        if has_reference(given) or is_routed or any(word in given for word in ROUTES):
            return [ANY]
    found = []
    for key in (*WHOLE, *PREFIXES):
        text = config.get(key, "").strip()
        if has_reference(text):
            return [ANY]
        if text:
            found.append(text if key in WHOLE else f"{text}{ANY}")
    # A key that the connector does not know does not determine the topics.
    known = plugin.definition().by_name
    for key, switch in SWITCHES.items():
        is_on = config.get(switch, "").strip() not in ("", "0")
        if is_on and key in known and not config.get(key, "").strip():
            found.append(f"{known[key].default}{ANY}")
    return found if any(config.get(key) and key in known for key in (*WHOLE, *PREFIXES)) else [ANY]


def covers(names: Names, pattern: str) -> bool:
    """Return whether rights include all names of a pattern."""
    if not pattern.endswith(ANY):
        return pattern in names
    # A literal right never includes a prefix; a prefix includes longer ones.
    return names.is_all or pattern[:-1].startswith(names.prefixes)


def _of_sink(config: Mapping[str, str]) -> Iterator[Need]:
    topics = config.get(keys.TOPICS, "")
    is_open = bool(config.get(keys.TOPICS_REGEX, "").strip()) or has_reference(topics)
    patterns = [ANY] if is_open else [one for part in topics.split(",") if (one := part.strip())]
    for pattern in patterns:
        yield Need(operation=Operation.READ_PAYLOADS, pattern=pattern)
    dead = config.get(keys.DEAD_LETTERS, "").strip()
    if dead:
        pattern = ANY if has_reference(dead) else dead
        yield Need(operation=Operation.PRODUCE, pattern=pattern)
        # Only a worker knows whether the topic exists, and creates it if not.
        yield Need(operation=Operation.CREATE_TOPICS, pattern=pattern)


def _of_output(plugin: type[Connector], config: Mapping[str, str]) -> Iterator[Need]:
    """Yield the rights of a job on its output topic."""
    topic = config.get(OUTPUT, "").strip()
    if topic and OUTPUT in plugin.definition().by_name:
        pattern = ANY if has_reference(topic) else topic
        yield Need(operation=Operation.PRODUCE, pattern=pattern)


def _on_files(plugin: type[Connector], config: Mapping[str, str]) -> Iterator[tuple[str, Need]]:
    """Yield the keys that name files, each with the right that it needs."""
    for key in plugin.definition():
        if key.files is None:
            continue
        operation = Operation.WRITE_FILES if key.files.is_written else Operation.READ_FILES
        for pattern in _files_of(key, key.files, config.get(key.name, "")):
            yield key.name, Need(operation=operation, pattern=pattern)


def _files_of(key: Key, files: Files, text: str) -> list[str]:
    if has_reference(text):
        return [ANY]
    try:
        value = checks.parse(key, text) if text.strip() else checks.default_of(key)
        paths = files.paths(value) if value and value is not REQUIRED else ()
        return [home_files.pattern_of(path, is_folder=files.is_folder) for path in paths]
    # An error of the config, which its validation reports.
    except (checks.InvalidValue, ConfigError):
        return []


def in_words(operation: Operation, names: str) -> str:
    """Return an operation on names, after "may"."""
    verb = OPERATIONS[operation].verb
    # Of these the verb has the kind in it: read files.
    return f"{verb.split()[0] if kind_of(operation) is Kind.FILE else f'{verb} on'} {names}"


def _sentence(caller: Caller, need: Need) -> str:
    kind = need.kind.value
    if need.pattern == ANY:
        which = f"all {kind}s"
        advice = f"and this config can lead to any of them: name the {kind}s in it"
    else:
        which = f"{kind} {need.pattern}"
        if need.pattern.endswith(ANY):
            which = f"all {kind}s that begin with {need.pattern[:-1]}"
        advice = f"which this connector would do: name another {kind}"
    may_not = f"You may not {in_words(need.operation, which)}"
    return f"{may_not}, {advice}, or {caller.remedy(need.operation, need.kind, need.pattern)}"
