"""Reports the state of Spark in this worker, as JSON, for pages on any host.

It only asks what answers at once: a worker that waits here would be taken for gone.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from connectors.sdk.home_files import HOME
from spark_integration.jobs.errors import SparkError
from spark_integration.jobs.session import facts, wanted_target
from spark_integration.jobs.settings import wants_ui
from spark_integration.jobs.targets import shown

# Round memory to this, so that a change of a few pages makes no new report.
MEMORY_STEP: Final = 16 * 1024 * 1024
# A line of /proc/PID/status: the KiB of resident pages.
RESIDENT: Final = "VmRSS:"


def told(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the facts about Spark in this process, without any secret."""
    found = facts()
    target, refused = _target(environment)
    engine = None if found.engine is None else asdict(found.engine)
    process = 0 if found.engine is None else found.engine.process
    return {
        "is_installed": is_installed("pyspark"),
        "stage": found.stage.value,
        "target": found.target or target,
        "since_ms": found.since_ms,
        "engine": engine,
        "memory_bytes": resident_bytes(process) if process else None,
        "streams": [asdict(stream) for stream in found.streams],
        "failure": found.failure or refused,
        "failed_ms": found.failed_ms,
        "wants_ui": wants_ui(environment),
        "logs": str(Path(environment.get(HOME) or ".samsa").absolute() / "logs"),
    }


def _target(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the configured Spark, and why the configuration is refused."""
    try:
        return shown(wanted_target(environment).url), ""
    except SparkError as error:
        return "", shown(str(error))


def is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def resident_bytes(process: int) -> int | None:
    """Return the resident memory of a process; None if the process is gone."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(RESIDENT):
                used = int(line.split()[1]) * 1024
                return round(used / MEMORY_STEP) * MEMORY_STEP
    return None
