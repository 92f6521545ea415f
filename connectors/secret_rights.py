"""Checks whether the author of a config may use the secrets that it refers to.

A worker resolves every reference with the rights of the home, so a user who writes configs could
have any secret sent to a server of their own. Therefore each reference needs a right on its name.

A reference written by a user with the right stays while users without it change other keys, except
keys that could send the secret elsewhere.
"""

from collections.abc import Callable, Mapping
from typing import Final

from connectors import framework_keys as keys
from connectors.kept_secrets import leading_elsewhere
from connectors.references import SECRET, Reference, has_reference, references
from connectors.sdk.configs import Kind as KeyKind
from connectors.sdk.connector import Connector
from connectors.vault import revealed
from gateway.access.callers import Caller
from gateway.access.operations import Kind, Operation

# Keys that cannot send a value elsewhere.
HARMLESS: Final = frozenset(
    {keys.TASKS_MAX, "errors.retry.timeout", "errors.retry.delay.max.ms", "errors.tolerance"}
)
Config = Mapping[str, str]


def name_of(reference: Reference) -> str:
    """Return the resource name for the right on a reference.

    A secret's name has no colon, so it never equals that of a file or a variable.
    """
    if reference.provider == SECRET:
        return reference.key
    path = f"{reference.path}:" if reference.path else ""
    return f"{reference.provider}:{path}{reference.key}"


def names_in(config: Config) -> tuple[str, ...]:
    """Return the resource names of all references in a config."""
    found = (one for text in config.values() for one in references(revealed(text)))
    return tuple(sorted({name_of(reference) for reference in found}))


def refused(
    caller: Caller,
    cluster: str,
    plugin: type[Connector],
    config: Config,
    stored: Callable[[], Config],
) -> dict[str, str]:
    """Return the keys whose references a caller may not use, each with an error.

    `stored` returns the connector's config in clear, empty for a new one; it is called only if a
    right is missing.
    """
    allowed = caller.rights.names(Operation.USE_SECRETS, cluster=cluster, kind=Kind.SECRET)
    lacking: dict[str, Reference] = {}
    for key, text in config.items():
        if has_reference(text):
            found = (one for one in references(revealed(text)) if name_of(one) not in allowed)
            missing = next(found, None)
            if missing is not None:
                lacking[key] = missing
    if not lacking:
        return {}
    former = stored()
    told = {}
    for key, missing in lacking.items():
        if former.get(key) != config[key]:
            told[key] = _sentence(caller, key, missing, "")
        elif changed := _leading_elsewhere(plugin, key, config, former):
            told[key] = _sentence(caller, key, missing, ", ".join(sorted(changed)))
    return told


def _leading_elsewhere(
    plugin: type[Connector], key: str, config: Config, former: Config
) -> set[str]:
    """Return changed keys that could send the value of a key elsewhere."""
    known = plugin.definition().by_name.get(key)
    if known is not None and known.kind is KeyKind.PASSWORD:
        return leading_elsewhere(config, former)
    # Any other value may become part of a record, a file or an address.
    names = {*config, *former} - HARMLESS
    return {name for name in names if config.get(name) != former.get(name)}


def _sentence(caller: Caller, key: str, missing: Reference, changed: str) -> str:
    name = name_of(missing)
    why = f"{changed} changes, which could send it elsewhere" if changed else "this value names it"
    undo = ", or leave that as it is" if changed else ", or name another one"
    return (
        f"Invalid value for configuration {key}: you may not use secret {name}, and {why}:"
        f" {caller.remedy(Operation.USE_SECRETS, Kind.SECRET, name)}{undo}"
    )
