"""Writes wrappers: small programs that change the arguments of those that Spark starts."""

import os
import tempfile
from pathlib import Path


def write_door(target: Path, script: str) -> None:
    """Write a program atomically: other processes may start it meanwhile."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if target.is_file() and target.read_text(encoding="utf-8") == script:
        return
    number, name = tempfile.mkstemp(dir=target.parent)
    with open(number, "w", encoding="utf-8") as file:  # noqa: PTH123 (a descriptor)
        file.write(script)
        os.fchmod(number, 0o700)
    Path(name).replace(target)
