"""Lists and creates the single message transforms, by Java's names.

Each is a function from a record to another one, built from the values of its keys.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType, ModuleType
from typing import Any, Final

from connectors.runtime.settings import parse_all
from connectors.runtime.transforms import (
    cast,
    extract_field,
    flatten,
    header_from,
    headers,
    hoist_field,
    insert_field,
    mask_field,
    new_record_state,
    replace_field,
    routers,
    schema_metadata,
    timestamp_converter,
    value_to_key,
)
from connectors.runtime.transforms.sides import Apply, Side
from connectors.sdk.configs import Definition

PACKAGE: Final = "org.apache.kafka.connect.transforms."
DEBEZIUM: Final = "io.debezium.transforms."


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformClass:
    """A kind of transform: its class in Java, its keys, and its factory."""

    name: str
    keys: Definition
    build: Callable[[Mapping[str, Any]], Apply]

    @property
    def alias(self) -> str:
        """Return the name without its package, which Connect accepts too."""
        return self.name.rpartition(".")[2]

    def definition(self) -> Definition:
        return self.keys

    def make(self, config: Mapping[str, Any]) -> Apply:
        """Return the transform's function; ConfigError if the config is invalid."""
        return self.build(parse_all(self.keys, config))


def _of_side(name: str, module: ModuleType, side: Side) -> TransformClass:
    return TransformClass(
        name=f"{PACKAGE}{name}${side.value}",
        keys=module.KEYS,
        build=partial(module.build, side=side),
    )


# Java has a class for the key and one for the value of each of these.
_SIDED: Final = {
    "Cast": cast,
    "ExtractField": extract_field,
    "Flatten": flatten,
    "HeaderFrom": header_from,
    "HoistField": hoist_field,
    "InsertField": insert_field,
    "MaskField": mask_field,
    "ReplaceField": replace_field,
    "SetSchemaMetadata": schema_metadata,
    "TimestampConverter": timestamp_converter,
}
ALL: Final = (
    *(_of_side(name, module, side) for name, module in _SIDED.items() for side in Side),
    TransformClass(name=f"{PACKAGE}DropHeaders", keys=headers.DROP_KEYS, build=headers.build_drop),
    TransformClass(name=f"{PACKAGE}Filter", keys=routers.FILTER_KEYS, build=routers.build_filter),
    TransformClass(
        name=f"{PACKAGE}InsertHeader", keys=headers.INSERT_KEYS, build=headers.build_insert
    ),
    TransformClass(
        name=f"{PACKAGE}RegexRouter", keys=routers.REGEX_KEYS, build=routers.build_regex_router
    ),
    TransformClass(
        name=f"{PACKAGE}TimestampRouter",
        keys=routers.TIMESTAMP_KEYS,
        build=routers.build_timestamp_router,
    ),
    TransformClass(name=f"{PACKAGE}ValueToKey", keys=value_to_key.KEYS, build=value_to_key.build),
    TransformClass(
        name=f"{DEBEZIUM}ExtractNewRecordState",
        keys=new_record_state.KEYS,
        build=new_record_state.build,
    ),
)
# By Java's name and by its last part.
CLASSES: Final[Mapping[str, TransformClass]] = MappingProxyType(
    {name: one for one in ALL for name in (one.name, one.alias)}
)
