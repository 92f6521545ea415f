"""Parses and validates a whole config by its definition.

`connectors.sdk.checks` handles single keys. A config with any invalid value is refused as a whole,
since configs that run have been validated before.
"""

from collections.abc import Mapping
from typing import Any

from connectors.sdk.checks import InvalidValue, check, missing, parse
from connectors.sdk.configs import Definition, Key
from connectors.sdk.errors import ConfigError


def parse_all(definition: Definition, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for each key; ConfigError with the first message if any is invalid."""
    return {key.name: _value(key, config) for key in definition}


def _value(key: Key, config: Mapping[str, Any]) -> Any:
    if key.name not in config:
        if key.is_required:
            raise ConfigError(missing(key))
        return key.default
    try:
        value = parse(key, config[key.name])
    except InvalidValue as error:
        raise ConfigError(str(error)) from error
    if wrong := check(key, value):
        raise ConfigError(wrong)
    return value
