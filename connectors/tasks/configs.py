"""The config of a task as its code gets it: opened, references followed, and parsed.

Here, late, and in a worker only: nothing else ever holds these values.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.conf import settings

from connectors import registry
from connectors.providers import Sources, resolve
from connectors.references import Allowed, has_reference
from connectors.runtime.settings import parse_all
from connectors.sdk.configs import Definition, Secret
from connectors.sdk.connector import Connector
from connectors.sdk.errors import ConfigError
from connectors.vault import Place, Vault

# Below the home's secrets: one file to a secret.
SECRETS_FOLDER = "connect.d"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearConfig:
    """What a task is told, and what of it nobody else may see."""

    plugin: type[Connector]
    config: Mapping[str, str] = field(repr=False)
    parsed: Mapping[str, Any] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def plugin_of(name: str) -> type[Connector]:
    """Return a connector that can run here; ConfigError says why it cannot."""
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
    *, plugin: str, stored: Mapping[str, Any], own: Mapping[str, str], cluster: str, name: str
) -> ClearConfig:
    """Return a config in clear, with the task's own keys over the connector's."""
    found = plugin_of(plugin)
    opened = _vault().open(stored, Place(cluster=cluster, connector=name))
    resolved = resolve(opened, _sources())
    config = {**resolved.config, **own}
    definition = found.definition()
    try:
        parsed = parse_all(definition, config)
    except ConfigError:
        _require_fit(definition, config, opened)
        raise
    # What a connector tells its tasks need not be a key that people may set.
    told = {key: text for key, text in own.items() if key not in definition.by_name}
    return ClearConfig(
        plugin=found, config=config, parsed={**told, **parsed}, secrets=resolved.secrets
    )


def _require_fit(
    definition: Definition, config: Mapping[str, str], opened: Mapping[str, str]
) -> None:
    """Raise ConfigError for a reference that stands for what its key does not take.

    The message of a parser repeats the value, and would tell anybody what a secret is.
    """
    for key in definition:
        text = opened.get(key.name, "")
        if not has_reference(text.reveal() if isinstance(text, Secret) else text):
            continue
        try:
            parse_all(Definition((key,)), config)
        except ConfigError:
            raise ConfigError(
                f"Invalid value for configuration {key.name}: what its reference stands for is no"
                f" {key.kind.value} that the key takes; it is not shown, as it may be a secret"
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
