"""Makes the steps of a connector from its config: converters, and the chain of transforms."""

from collections.abc import Mapping
from typing import Final

from connectors.runtime import chain, converters
from connectors.runtime.steps import Steps
from connectors.runtime.task_settings import below

# Defaults for a config without converters, as in Connect's own workers.
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
DEFAULTS: Final[Mapping[str, str]] = {
    "key.converter": JSON,
    "value.converter": JSON,
    "header.converter": SIMPLE,
}


def make(config: Mapping[str, str]) -> Steps:
    """Return the steps; ConfigError names the part that cannot be made."""
    return Steps(
        key=_converter("key.converter", config),
        value=_converter("value.converter", config),
        header=converters.make_for_headers(*_named("header.converter", config)),
        chain=chain.make(config),
    )


def _converter(key: str, config: Mapping[str, str]) -> converters.Converter:
    return converters.make(*_named(key, config), is_key=key == "key.converter")


def _named(key: str, config: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the class of a converter, and the keys for it."""
    return (config.get(key) or DEFAULTS[key]).strip(), below(config, f"{key}.")
