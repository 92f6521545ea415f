"""Which Python runs the code that Spark is given."""

import sys
from collections.abc import Mapping


def python_of(environment: Mapping[str, str]) -> str:
    """Return the interpreter of Spark's Python workers, which would be the system's otherwise."""
    return environment.get("PYSPARK_PYTHON") or sys.executable
