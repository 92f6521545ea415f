"""Validates the configuration of a broker at its start.

A key without effect is refused: operators would trust a broker that shows `authorizer.class.name`
as set but authorizes nothing. Uses no file and no command line.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from brokers.cluster import broker_configs, topic_configs
from brokers.cluster.config_values import LIVE

# Names of keys that a refusal of an unknown one suggests.
MAX_SUGGESTIONS: Final = 3
_SHOWN: Final = 100

_NOT_SERVED: Final = "this release has no use for it"
_BY_ADDRESS: Final = "the addresses follow from --bind, --port and --advertise"
_BY_CLUSTER: Final = "the cluster gives each broker its id"
_BY_HOME: Final = "the Nth broker of a home keeps its logs in data/broker-N there"
# Why a broker uses other settings in place of these.
_DECIDED: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("advertised.listeners", "listeners"), _BY_ADDRESS),
        **dict.fromkeys(("broker.id", "node.id"), _BY_CLUSTER),
        **dict.fromkeys(("log.dir", "log.dirs"), _BY_HOME),
        **dict.fromkeys(
            (
                "authorizer.class.name",
                "auto.leader.rebalance.enable",
                "fetch.max.bytes",
                "inter.broker.listener.name",
                "max.incremental.fetch.session.cache.slots",
                "process.roles",
                "producer.id.expiration.ms",
                "queued.max.requests",
                "sasl.enabled.mechanisms",
                "security.inter.broker.protocol",
                "super.users",
            ),
            _NOT_SERVED,
        ),
    }
)


def wrong(key: str, text: str, numbers: Mapping[str, int]) -> str | None:
    """Return the fault of a broker's `key`, as a sentence; None if it is valid.

    `numbers` are the keys that must be at least 1; some are this project's own.
    """
    row = broker_configs.ROWS.get(key)
    if row is None and key not in numbers:
        return _unknown(key, numbers)
    fault = None if row is None else row.wrong(text)
    if fault is None and key in numbers:
        fault = _wrong_number(text)
    if fault is not None:
        return f"{key} is {text[:_SHOWN]!r}, and that {fault}"
    reason = _DECIDED.get(key)
    if row is not None:
        if reason is None and row.effect != LIVE:
            reason = row.effect
        if row.is_default(text) or row.is_idle:
            reason = None
    if reason is not None:
        return f"{key}={text[:_SHOWN]} would have no effect: {reason}"
    return None


def _wrong_number(text: str) -> str | None:
    try:
        return None if int(text) >= 1 else "is below 1"
    except ValueError:
        return "is not a number"


def _unknown(key: str, numbers: Mapping[str, int]) -> str:
    topic_row = topic_configs.ROWS.get(key)
    if topic_row is not None:
        near = [synonym.key for synonym in topic_row.synonyms]
        what = f"{key} is a topic's config, not a broker's"
    else:
        # Only mistakes need this module, and every broker would keep it in memory.
        from difflib import get_close_matches  # noqa: PLC0415

        near = get_close_matches(key[:_SHOWN], [*broker_configs.ROWS, *numbers], n=MAX_SUGGESTIONS)
        what = f"there is no broker config {key[:_SHOWN]!r}"
    return f"{what}; near it: {', '.join(near[:MAX_SUGGESTIONS])}" if near else what
