"""Turns the texts of a config into the values that a definition describes, all at once.

Single keys are parsed and checked by `connectors.sdk.checks`; here a config that has anything wrong
is refused as a whole, since what runs has been validated before.
"""

from collections.abc import Mapping
from typing import Any

from connectors.sdk.checks import InvalidValue, check, missing, parse
from connectors.sdk.configs import Definition, Key
from connectors.sdk.errors import ConfigError


def parse_all(definition: Definition, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for each key; ConfigError with the first message where one is wrong."""
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
