"""The table of the kinds of plans: a row for each adapter."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from console.plans import connectors, groups, metadata, offsets, orders, redrives
from console.plans.kind import Kind

_ROWS: Final[tuple[Kind[Any], ...]] = (
    metadata.KIND,
    groups.KIND,
    orders.KIND,
    connectors.KIND,
    offsets.KIND,
    redrives.KIND,
)
KINDS: Final[Mapping[str, Kind[Any]]] = MappingProxyType({kind.name: kind for kind in _ROWS})
