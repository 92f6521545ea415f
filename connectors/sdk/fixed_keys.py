"""Makes keys of other implementations that are accepted with one value only.

If such a key were ignored, a sink would not do what the config says; so other values are refused,
with the reason.
"""

from typing import Any

from connectors.sdk.checks import show
from connectors.sdk.configs import Check, Importance, Key, Kind


def fixed_key(name: str, kind: Kind, value: Any, why: str, *, also: tuple[Any, ...] = ()) -> Key:
    """Return a key that accepts `value`, which is its default, and those in `also`."""
    return Key(
        name=name,
        kind=kind,
        default=value,
        importance=Importance.LOW,
        doc=f"Not supported beyond its default: {why}",
        check=_only((value, *also), why),
        group="Compatibility",
        visible=lambda _values: False,
    )


def _only(allowed: tuple[Any, ...], why: str) -> Check:
    def check_fixed(value: Any) -> str | None:
        if value in allowed or value in (None, ""):
            return None
        shown = " or ".join(show(one) for one in allowed if one is not None)
        other = f", or give {shown}" if shown else ""
        return f"It is not supported ({why}): take it out{other}"

    return check_fixed
