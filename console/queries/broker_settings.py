"""Reads the configs of one broker: the value in effect, its source and its meaning.

The database holds configs that were set at run time. Only the broker knows its start-up configs: it
is asked on request, and the page says whether it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from brokers.cluster import broker_configs
from brokers.cluster.config_values import LIVE, ConfigRow, ConfigType
from brokers.cluster.image import ResourceType
from brokers.controlplane import selectors
from gateway.access.turns import TooBusy, Turns
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Config, ResourceKind

HIDDEN: Final = "(hidden)"
# A broker answers in milliseconds; a page does not wait longer for one that is down.
ASK_SECONDS: Final = 3.0
SOURCES: Final[Mapping[str, str]] = {
    "DEFAULT_CONFIG": "default",
    "STATIC_BROKER_CONFIG": "set at its start",
    "DYNAMIC_BROKER_CONFIG": "this broker",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "all brokers",
}
# Each question creates a client with threads of its own.
_turns: Final = Turns(places=2, queue=2, wait_s=ASK_SECONDS, what="brokers are being asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    key: str
    value: str
    source: str
    is_set: bool  # at run time, for this broker or for all
    default: str
    meaning: str
    can_change: bool  # at run time, to a value that has an effect, or back to the default
    is_wide: bool  # can only be set for all brokers at once
    no_effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    rows: tuple[Setting, ...]
    others: tuple[Setting, ...] = ()  # at their default and not dynamic
    # The broker was asked, so its start-up configs are known.
    is_whole: bool = False
    failure: str = ""


def settings_of(cluster_id: str, broker_id: int, *, ask: str = "") -> Settings:
    """Return all settings; `ask` is the address of the broker if it shall be asked."""
    own = selectors.configs(
        cluster_id=cluster_id, resource_type=ResourceType.BROKER, name=str(broker_id)
    )
    wide = selectors.configs(cluster_id=cluster_id, resource_type=ResourceType.BROKER, name="")
    told: dict[str, Config] | None = None
    failure = ""
    if ask:
        told, failure = _asked(ask, broker_id)
    rows = [
        _setting(row, own, wide, told or {})
        for row in broker_configs.ROWS.values()
        if not row.is_hidden or row.key in own or row.key in wide
    ]
    rows += [_unknown(key, own) for key in {**wide, **own} if key not in broker_configs.ROWS]
    # List the configs that were set first.
    rows.sort(key=lambda row: (not row.is_set, row.source == "default", row.key))
    others = [row for row in rows if row.source == "default" and not row.can_change]
    return Settings(
        rows=tuple(row for row in rows if row not in others),
        others=tuple(others),
        is_whole=told is not None,
        failure=failure,
    )


def _asked(address: str, broker_id: int) -> tuple[dict[str, Config] | None, str]:
    try:
        with _turns.turn():
            admin = Admin(Connection(bootstrap=address, timeout_s=ASK_SECONDS))
            found = admin.configs(ResourceKind.BROKER, str(broker_id))
    except (KafkaFailure, TooBusy) as failure:
        return None, f"{failure}"
    return {each.key: each for each in found}, ""


def _setting(
    row: ConfigRow, own: Mapping[str, str], wide: Mapping[str, str], told: Mapping[str, Config]
) -> Setting:
    key, known = row.key, told.get(row.key)
    if key in own:
        value, source = own[key], "this broker"
    elif key in wide:
        value, source = wide[key], "all brokers"
    elif known is not None:
        value, source = known.value or "", SOURCES.get(known.source, known.source)
    else:
        value, source = row.default or "", "default"
    is_set = key in own or key in wide
    is_secret = row.type is ConfigType.PASSWORD or (known is not None and known.is_sensitive)
    return Setting(
        key=key,
        value=HIDDEN if is_secret and value else value,
        source=source,
        is_set=is_set,
        default=row.default if row.default is not None else "none",
        meaning=row.sentence,
        can_change=row.is_dynamic and (row.effect == LIVE or is_set),
        is_wide=key in broker_configs.CLUSTER_WIDE,
        no_effect="" if row.effect == LIVE else row.effect,
    )


def _unknown(key: str, own: Mapping[str, str]) -> Setting:
    """Return a config that brokers keep without knowing it; its value may be a secret."""
    return Setting(
        key=key,
        value=HIDDEN,
        source="this broker" if key in own else "all brokers",
        is_set=True,
        default="none",
        meaning="Brokers do not know this config, so it has no effect.",
        can_change=True,
        is_wide=False,
        no_effect="",
    )
