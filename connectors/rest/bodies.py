"""Parses the bodies of calls; ApiError if they are invalid. JSON has limits before."""

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from connectors.models import Target
from connectors.services import Offsets
from gateway.rest.codes import ApiError, Code

STATES: Final = {
    "RUNNING": Target.STARTED,
    "PAUSED": Target.PAUSED,
    "STOPPED": Target.STOPPED,
}
OF_CREATE: Final = frozenset({"name", "config", "initial_state"})
NULL: Final = "Null value can not be supplied as the configuration value."


def config_of(given: object) -> dict[str, str]:
    """Return a config: texts by key. Numbers and booleans are formatted as JSON."""
    found = patch_of(given)
    for key, text in found.items():
        if text is None:
            _refuse(f"{NULL} It is that of {key[:200]}: leave the key out, or give a text")
    return {key: text for key, text in found.items() if text is not None}


def patch_of(given: object) -> dict[str, str | None]:
    """Return changes of a config, in which null removes a key."""
    if not isinstance(given, dict):
        _refuse(f"a config is a JSON object with texts, not a {type(given).__name__}")
    return {key: _text_of(key, value) for key, value in given.items()}


def create_of(given: Mapping[str, Any]) -> tuple[str, dict[str, str], Target]:
    """Return the name, the config and the initial state of a connector to create."""
    unknown = sorted(given.keys() - OF_CREATE)
    if unknown:
        known = ", ".join(sorted(OF_CREATE))
        _refuse(f"Unrecognized field {unknown[0][:100]!r}: a connector is made of {known}")
    if "config" not in given:
        _refuse('the field "config" is missing: give a JSON object with connector.class in it')
    config = config_of(given["config"])
    name = given.get("name", config.get("name"))
    if not isinstance(name, str):
        _refuse('the field "name" is missing: give the name of the connector as a text')
    state = given.get("initial_state") or "RUNNING"
    if not isinstance(state, str) or state.upper() not in STATES:
        _refuse(f"initial_state is {state!r:.100}: give {', '.join(STATES)}")
    return name, config, STATES[state.upper()]


def offsets_of(given: Mapping[str, Any]) -> Offsets:
    """Return pairs of a partition and an offset, each an object or null."""
    listed = given.get("offsets")
    if listed is None:
        return []
    if not isinstance(listed, list):
        _refuse(f'"offsets" is a {type(listed).__name__}: give a list of objects')
    found = []
    for one in listed:
        if not isinstance(one, dict):
            _refuse('an entry of "offsets" is an object with "partition" and "offset"')
        pair = [one.get("partition"), one.get("offset")]
        if not all(part is None or isinstance(part, dict) for part in pair):
            _refuse('"partition" and "offset" are JSON objects, or null')
        found.append((pair[0], pair[1]))
    return found


def _text_of(key: str, value: object) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return str(value)
        case _:
            what = f"{key[:200]} is a {type(value).__name__}"
            raise ApiError(Code.BAD_REQUEST, f"{what}: values of a config are texts")


def _refuse(message: str) -> NoReturn:
    raise ApiError(Code.BAD_REQUEST, message)
