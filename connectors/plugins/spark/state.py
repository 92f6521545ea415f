"""Stores the state of a job: one file in the folder of its table, replaced as a whole.

It is beside the table, since both are lost or copied together, and since a worker on another host
that finds the table finds the state too.
"""

import os
import shutil
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from connectors.plugins.spark.batches import State, dump, load, new_state
from connectors.sdk.errors import ConnectorError, RetriableError
from connectors.sdk.home_files import NOTES

NAME: Final = "state.json"
STAGING: Final = "staging"
# A state has a line for each partition and for each file of a batch.
MAX_BYTES: Final = 64 * 1024 * 1024


class StateFile:
    def __init__(self, table: Path, job: str) -> None:
        self._folder = table / NOTES / job
        self._path = self._folder / NAME
        self.staging = self._folder / STAGING

    def read(self, epoch: int) -> State:
        """Return the state for the owner of an epoch; RetriableError if a newer owner wrote it."""
        try:
            with self._path.open("rb") as file:
                # A truncated text is not valid JSON.
                content = file.read(MAX_BYTES)
        except FileNotFoundError:
            return replace(new_state(), epoch=epoch)
        except OSError as error:
            raise RetriableError(f"{self._path} cannot be read: {error.strerror}") from error
        try:
            state = load(content)
        except (ValueError, KeyError, TypeError, AssertionError) as error:
            raise ConnectorError(
                f"{self._path} cannot be read, so it is not known what the table holds: {error!r};"
                " put a copy of it back, or remove it and set the offsets to where to begin"
            ) from error
        if state.epoch > epoch:
            raise RetriableError(
                f"the table is written by a later owner of the task (epoch {state.epoch}, this one"
                f" has {epoch})"
            )
        return replace(state, epoch=epoch)

    def write(self, state: State) -> None:
        """Replace the file durably; RetriableError if the disk does not take it."""
        fresh = self._path.with_suffix(".new")
        try:
            top = next(one for one in (self._folder, *self._folder.parents) if one.exists())
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with fresh.open("wb") as file:
                file.write(dump(state))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._path)
            sync_folder(self._folder)
            # A folder whose name is not durable loses its contents too.
            for one in self._folder.parents if top != self._folder else ():
                if one.is_relative_to(top):
                    sync_folder(one)
        except OSError as error:
            raise RetriableError(f"{self._path} cannot be written: {error.strerror}") from error

    def new_staging(self) -> Path:
        """Return a new folder: the Spark of a former owner may still write to the previous one."""
        return self.staging / uuid.uuid4().hex

    def clear_staging(self) -> None:
        with suppress(OSError):
            shutil.rmtree(self.staging)


def sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
