"""Stores Spark's classes in an archive that Java maps into memory when Spark starts.

Without it, Java reads and checks thousands of classes at each start, half of what a start costs.
Java itself refuses an archive that was made from other classes, and starts without it.
"""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from spark_integration.jobs.errors import SparkError
from spark_integration.jobs.java import Java, find_java

# Beside the packages: it is made from them, and goes with them.
FOLDER: Final = Path(sys.prefix, "spark-classes")
# Half a minute on two cores that are busy.
MOST_SECONDS: Final = 300
# Java's own classes as an archive, which one of Spark's adds to; the extra `java` has none.
OF_JAVA: Final = Path("lib", "server", "classes.jsa")
TRAINING: Final = "spark_integration.jobs.class_training"
ROOT: Final = Path(__file__).resolve().parents[2]


def options(java: Java | None) -> tuple[str, ...]:
    """Return the options by which Java starts with the archive; none where there is no archive."""
    file = None if java is None else archive_file(java)
    return () if file is None or not file.exists() else (f'"-XX:SharedArchiveFile={file}"',)


def archive_file(java: Java) -> Path | None:
    """Return where the archive of a Java and the installed Spark belongs; None without either."""
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        return None
    build = "".join(sign if sign.isalnum() or sign in "._+-" else "-" for sign in java.build)
    return FOLDER / f"spark-{spark}-java-{build}.jsa" if build else None


def wanted_file(environment: Mapping[str, str]) -> Path | None:
    """Return the archive that is missing here; None where it is there, or cannot be made."""
    java = find_java(environment)
    if java is None or not (java.home / OF_JAVA).exists():
        return None
    file = archive_file(java)
    return None if file is None or file.exists() else file


def make(file: Path, environment: Mapping[str, str]) -> None:
    """Run Spark once, and have Java store the classes that it used. Raises SparkError."""
    try:
        file.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent, prefix="making-") as folder:
            made = Path(folder, file.name)
            done = subprocess.run(
                [sys.executable, "-P", "-m", TRAINING, str(made), folder],
                cwd=ROOT,
                env={**environment, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=MOST_SECONDS,
                check=False,
            )
            if done.returncode != 0 or not made.exists():
                lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
                raise SparkError(
                    "Java made no archive" + "".join(f": {line}" for line in lines[-1:])
                )
            remove_others(file)
            made.replace(file)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkError(f"{file} was not made: {error}") from error


def remove_others(file: Path) -> None:
    """Remove archives of former releases of Spark or Java, 170 MB each."""
    for other in file.parent.glob("*.jsa"):
        if other != file:
            other.unlink(missing_ok=True)
