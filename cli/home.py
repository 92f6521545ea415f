"""Defines the option `--home` of all lifecycle commands."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

HOME_OPTION: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--home",
    default=".samsa",
    envvar="SAMSA_HOME",
    show_default=True,
    metavar="DIR",
    callback=lambda _context, _option, value: absolute(value),
    help="Folder for all files of the cluster.",
)


def absolute(folder: str) -> Path:
    # Not resolved: the home may be a link, and messages should have the name that the user gave.
    return Path(folder).expanduser().absolute()
