"""Doors: small programs in front of those that Spark starts, which change what these are told."""

import os
import tempfile
from pathlib import Path


def write_door(target: Path, script: str) -> None:
    """Write a program, whole or not at all: others may start it meanwhile."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if target.is_file() and target.read_text(encoding="utf-8") == script:
        return
    number, name = tempfile.mkstemp(dir=target.parent)
    with open(number, "w", encoding="utf-8") as file:  # noqa: PTH123 (a descriptor)
        file.write(script)
        os.fchmod(number, 0o700)
    Path(name).replace(target)
