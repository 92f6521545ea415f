"""Chooses the Python that runs user code for Spark.

Spark puts its own modules in front of all others as a zip, which each of its Python processes
compiles again, for half a second of CPU, since Python does not cache code from a zip. On this
machine the same modules are installed beside Samsa, so a wrapper of our Python removes the zips
from its path.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from spark_integration.jobs.doors import write_door

# An earlier session of this process may have left it in the environment.
NAME: Final = "samsa-python"
DOOR: Final = """\
#!/bin/sh
# Made by Samsa: the Python below, with modules of Spark as installed, not from its zip.
set -f
IFS=:
kept=
for place in $PYTHONPATH; do
    case $place in {zips}/*.zip) ;; *) kept=$kept:$place ;; esac
done
PYTHONPATH=${{kept#:}}
export PYTHONPATH
unset IFS
exec {python} "$@"
"""


def prepare_python(folder: Path, environment: Mapping[str, str], *, is_near: bool) -> str:
    """Return the interpreter of Spark's Python workers; its own default is the system's.

    If they run on this machine only, it is a wrapper, created in `folder`.
    """
    chosen = environment.get("PYSPARK_PYTHON", "")
    if chosen and Path(chosen).name != NAME:
        return chosen
    zips = zips_of_spark()
    # A remote Spark may be another release than the installed package.
    if not is_near or "SPARK_HOME" in environment or zips is None:
        return sys.executable
    door = folder / NAME
    write_door(door, DOOR.format(zips=shlex.quote(str(zips)), python=shlex.quote(sys.executable)))
    # False on a disk that is mounted without the permission to execute.
    return str(door) if os.access(door, os.X_OK) else sys.executable


def zips_of_spark() -> Path | None:
    """Return the folder of the zips in the package pyspark, if it is installed."""
    try:
        return Path(str(distribution("pyspark").locate_file("pyspark/python/lib")))
    except PackageNotFoundError:
        return None
