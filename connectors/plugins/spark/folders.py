"""Restricts tables to folders below the home's files."""

from pathlib import Path

from connectors.sdk import home_files
from connectors.sdk.errors import ConnectorError


def table_folder(text: str) -> Path:
    """Return the folder of a table; ConnectorError if it is not below the home's files."""
    root = home_files.root()
    folder = root.joinpath(*home_files.parts_of(text))
    if not folder.resolve().is_relative_to(root.resolve()):
        raise ConnectorError(f"{text} leads out of {root} by a symbolic link: give another folder")
    return folder
