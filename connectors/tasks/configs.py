"""Opens, resolves and parses the config of a task.

Only in a worker, just before it is used: no other process holds these values.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any

from django.conf import settings

from connectors import registry
from connectors.providers import Sources, resolve
from connectors.references import Allowed, has_reference
from connectors.runtime.masking import holds, masked
from connectors.runtime.settings import parse_all
from connectors.sdk.configs import MAX_VALUE_CHARS, Definition, Kind, Secret
from connectors.sdk.connector import Connector
from connectors.sdk.errors import ConfigError
from connectors.validation import MAX_KEYS, secrets_within
from connectors.vault import Opened, Place, Stored, Vault, revealed

# In the home's secrets folder: one file per secret.
SECRETS_FOLDER = "connect.d"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearConfig:
    """The config of a task in clear, with the list of its secrets."""

    plugin: type[Connector]
    config: Mapping[str, str] = field(repr=False)
    parsed: Mapping[str, Any] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def plugin_of(name: str) -> type[Connector]:
    """Return a connector that can run here; ConfigError with the reason if it cannot."""
    plugin = registry.find(name)
    if plugin is None:
        raise ConfigError(
            f"this worker has no connector {name}: install its package here, and restart the worker"
        )
    missing = registry.missing(plugin)
    if missing is not None:
        raise ConfigError(missing.reason)
    return plugin


def clear(
    *, plugin: str, stored: Mapping[str, Any], own: Mapping[str, Any], cluster: str, name: str
) -> ClearConfig:
    """Return a config in clear; the task's own keys override the connector's."""
    found = plugin_of(plugin)
    place = Place(cluster=cluster, connector=name)
    opened = _vault().open(stored, place)
    resolved = resolve(opened, _sources())
    # Task configs are used unchanged: their references were resolved before.
    told_sealed = _vault().open(own, place)
    hidden = {revealed(text) for text in told_sealed.values() if isinstance(text, Opened)}
    definition = found.definition()
    within = secrets_within(resolved.config, definition.by_name).values()
    secrets = tuple({*resolved.secrets, *hidden, *chain.from_iterable(within)} - {""})
    own = {key: revealed(text) for key, text in told_sealed.items()}
    config = {**resolved.config, **own}
    try:
        parsed = parse_all(definition, config)
    except ConfigError as error:
        _require_fit(definition, config, opened)
        # The parser's message repeats the value, which may be derived from a secret.
        raise ConfigError(masked(str(error), secrets)) from None
    # Keys that a connector adds to its task configs need not be in its definition.
    told = {key: text for key, text in own.items() if key not in definition.by_name}
    return ClearConfig(plugin=found, config=config, parsed={**told, **parsed}, secrets=secrets)


def seal(
    told: object, *, plugin: type[Connector], secrets: Iterable[str], cluster: str, name: str
) -> Stored:
    """Return a task config for storage. Raises ConfigError if it is invalid.

    Passwords are sealed, and so is any value that contains one of the connector's passwords: a
    plugin may return them under keys of its own.
    """
    if not isinstance(told, Mapping) or len(told) > MAX_KEYS:
        raise ConfigError(f"{plugin.name} returns no mapping of at most {MAX_KEYS} keys for a task")
    known, config = plugin.definition().by_name, {}
    hidden = []
    for key, value in told.items():
        text = value.reveal() if isinstance(value, Secret) else value
        if not isinstance(key, str) or not isinstance(text, str):
            # The value is not shown, since it may be secret.
            kind = type(value).__name__
            raise ConfigError(
                f"{plugin.name} returns a task's {str(key)[:100]} as a {kind}, not a text"
            )
        if len(text) > MAX_VALUE_CHARS:
            raise ConfigError(f"{plugin.name} returns {key[:100]} with {len(text)} characters")
        config[key] = text
        is_password = key in known and known[key].kind is Kind.PASSWORD
        if text and (isinstance(value, Secret) or is_password or holds(text, secrets)):
            hidden.append(key)
    return _vault().seal(config, hidden, Place(cluster=cluster, connector=name), is_resolved=True)


def _require_fit(
    definition: Definition, config: Mapping[str, str], opened: Mapping[str, str]
) -> None:
    """Raise ConfigError if the value of a reference does not fit its key.

    The parser's message repeats the value, and would reveal a secret.
    """
    for key in definition:
        text = opened.get(key.name, "")
        if not has_reference(revealed(text)):
            continue
        try:
            parse_all(Definition((key,)), config)
        except ConfigError:
            raise ConfigError(
                f"Invalid value for configuration {key.name}: the value of its reference is not a "
                f"{key.kind.value} that the key takes; it is not shown, since it may be a secret"
            ) from None


@cache
def _vault() -> Vault:
    return Vault(settings.SAMSA_CONNECT_KEY_FILE)


def _sources() -> Sources:
    names = frozenset(settings.SAMSA_CONNECT_ENV_NAMES)
    return Sources(
        allowed=Allowed(folders=settings.SAMSA_CONNECT_SECRET_DIRS, names=names),
        secrets=settings.SAMSA_SECRETS / SECRETS_FOLDER,
        environment={name: os.environ[name] for name in names if name in os.environ},
    )
