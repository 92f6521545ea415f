"""Who may import whom, as data: the rows of docs/architecture.md, "Who may import whom".

Rooms that do not exist yet have their row already, so that their first module is checked.
"""

from collections.abc import Iterable

from tests.tidy.project import Source

PURE = "brokers.protocol brokers.cluster brokers.clock "
CONTROLPLANE = (
    "brokers.cluster brokers.security brokers.protocol.errors brokers.protocol.frames "
    "brokers.clock brokers.config "
)
CONTROLPLANE_DOORS = "brokers.controlplane.services brokers.controlplane.selectors "
CONNECTORS_DOORS = "connectors.services connectors.selectors "
SHARD = "brokers.coordination.shard "
WEB = "django rest_framework channels celery"

# room: (what it may import from us, guarded outside packages it may import). A room is a dotted
# prefix, and the longest one that fits a module is its room.
MAY_IMPORT: dict[str, tuple[str, str]] = {
    "brokers.clock": ("", ""),
    "brokers.config": ("", ""),
    "brokers.protocol": ("", ""),
    "brokers.storage": ("brokers.protocol brokers.clock", ""),
    "brokers.cluster": ("brokers.protocol.errors brokers.clock", ""),
    "brokers.security": ("brokers.protocol brokers.cluster", "ssl"),
    "brokers.replication": (PURE + "brokers.storage", "asyncio threading"),
    "brokers.coordination.shard": (PURE, ""),
    "brokers.coordination.groups": (PURE + SHARD, "re2"),
    "brokers.coordination.transactions": (PURE + SHARD, ""),
    "brokers.coordination": (
        PURE
        + SHARD
        + "brokers.coordination.groups brokers.coordination.transactions brokers.replication",
        "asyncio",
    ),
    # The composition root of a broker, brokers.server.daemon, needs no exception: this row is
    # every room of the broker process; the two that it leaves out are Django and the parent.
    "brokers.server": (
        PURE
        + "brokers.config brokers.storage brokers.security brokers.replication "
        + "brokers.coordination brokers.inspection",
        "asyncio socket ssl h11",
    ),
    "brokers.controlplane": (CONTROLPLANE, "django"),
    # The two endless loops of the control plane.
    "brokers.controlplane.agent": (CONTROLPLANE + "brokers.controlplane", "django asyncio"),
    "brokers.controlplane.controller": (CONTROLPLANE + "brokers.controlplane", "django asyncio"),
    "brokers.supervisor": ("brokers.config brokers.clock", "asyncio"),
    "brokers.inspection": ("", ""),
    "cli": ("gateway.kafka brokers.supervisor brokers.inspection", "click rich"),
    "gateway.kafka": ("", "confluent_kafka"),
    "gateway": (
        CONNECTORS_DOORS + "gateway.kafka console.monitoring.selectors",
        WEB,
    ),
    "connectors.sdk": ("", ""),
    # A plugin's own client library is nobody else's business, so it is not guarded.
    "connectors.plugins": ("connectors.sdk", ""),
    "connectors.runtime": ("connectors.sdk gateway.kafka", ""),
    "connectors": ("connectors.runtime connectors.sdk connectors.plugins", "django celery"),
    "console": (
        CONTROLPLANE_DOORS + CONNECTORS_DOORS + "gateway.kafka brokers.inspection",
        "django celery channels",
    ),
    "spark_integration": ("", "pyspark pyarrow confluent_kafka"),
    # Outside the product: a benchmark may measure any room of the broker process.
    "bench": (
        PURE
        + "brokers.storage brokers.security brokers.replication brokers.coordination "
        + "brokers.server",
        "asyncio threading click rich confluent_kafka",
    ),
    # Django's own door: settings by name, nothing else.
    "manage": ("", "django"),
}

# Packages that mark what a room is allowed to be: concurrent, on the network, in the web.
GUARDED = frozenset(
    "asyncio threading concurrent multiprocessing socket socketserver ssl h11 re2 click rich "
    f"confluent_kafka pyspark pyarrow {WEB}".split()
)

# Packages with one door each within their room: package -> the modules that may import it.
DOORS: dict[str, frozenset[str]] = {
    "crc32c": frozenset({"brokers.protocol.records.crc32c"}),
    **dict.fromkeys(
        ("lz4", "zstandard", "cramjam", "isal", "zlib", "gzip"),
        frozenset({"brokers.protocol.records.compression"}),
    ),
    "msgspec": frozenset({"brokers.cluster.link", "gateway", "console", "connectors"}),
}
# A checksum is no codec.
FREE = frozenset({"zlib.crc32"})
# Where somebody else's package is the thing compared with.
DOORS_STAND_OPEN = ("bench",)


def is_within(dotted: str, prefix: str) -> bool:
    return f"{dotted}.".startswith(f"{prefix}.")


def room_of(dotted: str) -> str | None:
    """Return the longest room that holds a name; None for what is not ours, or lies in no room."""
    return max((room for room in MAY_IMPORT if is_within(dotted, room)), key=len, default=None)


def violations(sources: Iterable[Source]) -> list[str]:
    bad = []
    for source in sources:
        here = room_of(source.dotted)
        if here is None:
            if source.dotted != "brokers" or list(source.imports()):
                bad.append(f"{source.path}: belongs to no room of the map")
            continue
        bad += [
            f"{source.path}:{line}: {here} may not import {name}"
            for line, name in source.imports()
            if crosses(here, name) or smuggles(here, name) or forces_door(source.dotted, name)
        ]
    return bad


def crosses(here: str, name: str) -> bool:
    """Tell whether an import leaves the room for one that its row does not name."""
    there = room_of(name)
    ours = there is not None or is_within(name, "brokers")
    allowed = MAY_IMPORT[here][0].split()
    return ours and there != here and not any(is_within(name, room) for room in allowed)


def smuggles(here: str, name: str) -> bool:
    package = name.partition(".")[0]
    return package in GUARDED and package not in MAY_IMPORT[here][1].split()


def forces_door(dotted: str, name: str) -> bool:
    doors = DOORS.get(name.partition(".")[0])
    if doors is None or name in FREE or dotted.startswith(DOORS_STAND_OPEN):
        return False
    return not any(is_within(dotted, door) for door in doors)
