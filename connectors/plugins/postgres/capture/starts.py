"""Decides how a capture begins: with or without the existing rows, and where in the log.

Pure: the stored position and the server's state are arguments.
"""

from dataclasses import dataclass

from connectors.plugins.postgres.capture.positions import Position, text_of
from connectors.plugins.postgres.capture.settings import SnapshotMode
from connectors.plugins.postgres.capture.slots import Slot
from connectors.sdk.errors import ConnectorError


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What to do; `position` is None if the new slot will determine it."""

    position: Position | None
    has_rows: bool = False
    has_stream: bool = True
    makes_slot: bool = False
    drops_slot: bool = False
    # A warning for the task's log.
    words: str = ""


def start_of(
    mode: SnapshotMode, stored: Position | None, slot: Slot | None, *, name: str, epoch: int
) -> Start:
    """Return how to begin. Raises ConnectorError if changes are lost and the mode forbids it."""
    if not mode.has_stream:
        is_done = stored is not None and not stored.is_snapshot
        position = stored or Position(committed=0, is_snapshot=True)
        return Start(position=position, has_rows=not is_done, has_stream=False)
    if slot is not None and slot.is_lost:
        _allowed_loss(mode, f"the server has removed WAL that the slot {name} needs")
        return _anew(mode, drops_slot=True)
    if stored is None:
        return _first(mode, slot)
    if stored.is_snapshot and mode.has_rows:
        return _unfinished(mode, stored, slot, name)
    if slot is None:
        _allowed_loss(mode, f"the slot {name} does not exist")
        return _anew(mode)
    if (lost := _gap(stored, slot, name)) is not None:
        _allowed_loss(mode, lost)
        return Start(position=_beginning(slot.confirmed), has_rows=True)
    if mode is SnapshotMode.ALWAYS and stored.epoch != epoch:
        return Start(position=_beginning(stored.committed), has_rows=True)
    streaming = Position(
        committed=stored.committed,
        transaction=stored.transaction,
        change=stored.change,
        epoch=stored.epoch,
    )
    return Start(position=streaming)


def _gap(stored: Position, slot: Slot, name: str) -> str | None:
    """Return why a slot does not continue from the stored position; None if it does."""
    read = text_of(stored.committed)
    if slot.confirmed > stored.committed:
        begin = text_of(slot.confirmed)
        return f"the slot {name} has the log from {begin}, and this connector has read up to {read}"
    if slot.written is not None and slot.written < stored.committed:
        end = text_of(slot.written)
        return f"the log was read up to {read}, and ends at {end}, so it is another server's"
    return None


def _allowed_loss(mode: SnapshotMode, what: str) -> None:
    if mode not in (SnapshotMode.WHEN_NEEDED, SnapshotMode.ALWAYS):
        raise ConnectorError(
            f"{what}: changes since then may be lost. To read all rows again, set"
            " snapshot.mode=when_needed; to continue without, stop the connector and delete its"
            " offsets"
        )


def _first(mode: SnapshotMode, slot: Slot | None) -> Start:
    if slot is None:
        return _anew(mode)
    position = _beginning(slot.confirmed) if mode.has_rows else Position(committed=slot.confirmed)
    return Start(position=position, has_rows=mode.has_rows)


def _unfinished(mode: SnapshotMode, stored: Position, slot: Slot | None, name: str) -> Start:
    lost = f"the slot {name} does not exist" if slot is None else _gap(stored, slot, name)
    if lost is None:
        return Start(position=stored, has_rows=True)
    words = f"{lost}: the snapshot restarts, and rows deleted since are not reported"
    if slot is None:
        return Start(position=None, has_rows=mode.has_rows, makes_slot=True, words=words)
    return Start(position=_beginning(slot.confirmed), has_rows=True, words=words)


def _anew(mode: SnapshotMode, *, drops_slot: bool = False) -> Start:
    return Start(position=None, has_rows=mode.has_rows, makes_slot=True, drops_slot=drops_slot)


def _beginning(committed: int) -> Position:
    return Position(committed=committed, is_snapshot=True)
