"""Stores Spark's classes in an archive that Java maps into memory when Spark starts.

Without it, Java reads and checks thousands of classes at each start, half of what a start costs.
Java itself refuses an archive that was made from other classes, and starts without it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from spark_integration.jobs.errors import SparkError
from spark_integration.jobs.java import Java, find_java

# Beside the packages: it is made from them, and goes with them.
FOLDER: Final = Path(sys.prefix, "spark-classes")
# Half a minute on two idle cores; a machine that is busy gives a process that yields to all others
# far less.
MOST_SECONDS: Final = 1800
# Its folders are left behind by a process that was killed.
MAKING: Final = "making-"
ABANDONED_SECONDS: Final = 2 * MOST_SECONDS
# Java's own classes as an archive, which one of Spark's adds to; the extra `java` has none.
OF_JAVA: Final = Path("lib", "server", "classes.jsa")
TRAINING: Final = "spark_integration.jobs.class_training"
ROOT: Final = Path(__file__).resolve().parents[2]


def options(java: Java | None) -> tuple[str, ...]:
    """Return the options by which Java starts with the archive; none where there is no archive."""
    file = None if java is None else archive_file(java)
    return () if file is None or not is_there(file) else (f'"-XX:SharedArchiveFile={file}"',)


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
    return None if file is None or is_there(file) else file


def is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:
        # A folder that this user may not enter is as good as none.
        return False


def make(file: Path, environment: Mapping[str, str]) -> None:
    """Run Spark once, and have Java store the classes that it used. Raises SparkError."""
    try:
        file.parent.mkdir(exist_ok=True)
        remove_abandoned(file.parent)
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=MAKING) as folder:
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
            # Java trusts the file as it is, and ends where a power cut has left a part of it.
            sync(made)
            made.replace(file)
            sync(file.parent)
    except subprocess.TimeoutExpired as error:
        raise SparkError(f"Java took more than {MOST_SECONDS} s to make {file}") from error
    except OSError as error:
        raise SparkError(f"{file} was not made: {error}") from error


def remove_abandoned(parent: Path) -> None:
    """Remove folders in which an archive was being made when the process was killed."""
    for folder in parent.glob(f"{MAKING}*"):
        # Another process may remove it at the same time.
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def remove_others(file: Path) -> None:
    """Remove archives of former releases of Spark or Java, 170 MB each."""
    for other in file.parent.glob("*.jsa"):
        if other != file:
            other.unlink(missing_ok=True)
