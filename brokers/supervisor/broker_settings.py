"""Reads the static settings of a home's brokers: Kafka's broker configs, passed at their start.

They come from `broker.properties` in the home, for every run, and from `--set key=value`, which
overrides it for one run. All are checked before any process starts.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from brokers import quantities
from brokers.cluster.static_configs import wrong
from brokers.config import NUMBERS, ConfigError, broker_defaults
from brokers.quantities import BadQuantity
from brokers.supervisor import properties
from brokers.supervisor.errors import StartRefused

FILE_NAME: Final = "broker.properties"
# A file that names every key there is, with a comment on each, takes a quarter of this.
MAX_FILE_BYTES: Final = 65_536


def parse_setting(text: str) -> tuple[str, str]:
    """Read one `--set`; StartRefused says what is wrong with it."""
    key, separator, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not key or not separator:
        raise StartRefused(f"--set {text[:100]!r} is not of the form key=value")
    return key, _checked(key, value, f"--set {key}")


def read_file(path: Path) -> Mapping[str, str]:
    """Read the settings of a home; none if there is no file."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        # If the home is not a folder, the user learns it when the home is created.
        return {}
    except OSError as error:
        raise StartRefused(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise StartRefused(
            f"{path} is larger than {MAX_FILE_BYTES} bytes, the limit of a settings file"
        )
    try:
        found = properties.parse(content.decode())
    except ValueError as error:
        raise StartRefused(f"{path}: {error}") from error
    return {key: _checked(key, value, str(path)) for key, value in found.items()}


def environment(home: Path, given: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """Return the variable that carries the settings of a home to its brokers."""
    try:
        inherited = broker_defaults()
    except ConfigError as error:
        raise StartRefused(str(error)) from error
    settings = {**inherited, **read_file(home / FILE_NAME), **dict(given)}
    return {"SAMSA_DEFAULTS": json.dumps(settings)} if settings else {}


def _checked(key: str, text: str, where: str) -> str:
    """Return a value as brokers take it; StartRefused says what is wrong with it."""
    try:
        value = quantities.plain(key, text)
    except BadQuantity as error:
        raise StartRefused(f"{where}: {key} is {text[:100]!r}, and that {error}") from None
    fault = wrong(key, value, NUMBERS)
    if fault is not None:
        raise StartRefused(f"{where}: {fault}")
    return value
