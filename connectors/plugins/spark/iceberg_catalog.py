"""The catalog of Iceberg tables, a SQLite file below the home's files, and access to their files.

Others may have written the files that define a table, so paths and class names in them are not
trusted: nothing outside of the home's files is opened, and no class is loaded. Imports pyiceberg,
which is an extra, so only functions import this module.
"""

import io
import logging
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.table import Table
from pyiceberg.typedef import EMPTY_DICT, Properties

from connectors.plugins.spark.state import sync_folder
from connectors.sdk import home_files
from connectors.sdk.errors import ConnectorError

# Other engines use the same name: each row of the file names its catalog.
NAME: Final = "samsa"
SCHEME: Final = "file:"


@contextmanager
def catalog() -> Iterator["HomeCatalog"]:
    """Open the catalog of the home, and create it if there is none."""
    root = home_files.root()
    path = root / home_files.CATALOG
    if not path.resolve().is_relative_to(root.resolve()):
        raise ConnectorError(f"{path} leads out of {root} by a symbolic link: remove the link")
    # It logs for each table and each commit how it opens files.
    logging.getLogger("pyiceberg.io").setLevel(logging.WARNING)
    root.mkdir(mode=home_files.FOLDER_MODE, parents=True, exist_ok=True)
    with closing(HomeCatalog(path)) as opened:
        yield opened


def location_of(folder: Path) -> str:
    return f"{SCHEME}//{folder}"


def path_of(location: str) -> Path:
    """Return the path of a location; ConnectorError if it is outside of the home's files."""
    root = home_files.root()
    # To Iceberg, `file:/x`, `file:///x` and `/x` are one file, and none of them has escapes.
    path = Path("/" + location.removeprefix(SCHEME).lstrip("/"))
    is_ours = location.startswith(("/", f"{SCHEME}/")) and not location.startswith("//")
    if not is_ours or not path.resolve().is_relative_to(root.resolve()):
        raise ConnectorError(
            f"an Iceberg table names {location}, which is outside of {root}: give another table"
        )
    return path


class HomeCatalog(SqlCatalog):
    def __init__(self, path: Path) -> None:
        own = f"{HomeFiles.__module__}.{HomeFiles.__name__}"
        super().__init__(NAME, uri=f"sqlite:///{path}", **{"py-io-impl": own})

    def _load_file_io(
        self, properties: Properties = EMPTY_DICT, location: str | None = None
    ) -> FileIO:
        # A table may name a class of its own; ignore it.
        del properties, location
        return HomeFiles(self.properties)

    def found(self, identifier: tuple[str, str]) -> Table | None:
        try:
            return self.load_table(identifier)
        except NoSuchTableError:
            return None


class HomeFiles(FileIO):
    """Opens files below the home's folder, and makes written files durable."""

    def new_input(self, location: str) -> "HomeFile":
        return HomeFile(location)

    def new_output(self, location: str) -> "HomeFile":
        return HomeFile(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        path_of(location if isinstance(location, str) else location.location).unlink()


class HomeFile(InputFile, OutputFile):
    def __init__(self, location: str) -> None:
        super().__init__(location)
        self._path = path_of(location)

    def __len__(self) -> int:
        return self._path.stat().st_size

    def exists(self) -> bool:
        return self._path.exists()

    def open(self, seekable: bool = True) -> Any:
        del seekable
        return self._path.open("rb")

    def create(self, overwrite: bool = False) -> Any:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return DurableFile(io.FileIO(self._path, "wb" if overwrite else "xb"), self._path.parent)

    def to_input_file(self) -> "HomeFile":
        return self


class DurableFile(io.BufferedWriter):
    """A file that is synced when it is closed, since the catalog refers to it next."""

    def __init__(self, raw: io.FileIO, folder: Path) -> None:
        super().__init__(raw)
        self._folder = folder

    def close(self) -> None:
        if not self.closed:
            self.flush()
            os.fsync(self.fileno())
            sync_folder(self._folder)
        super().close()
