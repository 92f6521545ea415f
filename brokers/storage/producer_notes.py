"""Keeps the state of a log's producers in step with the log.

Fresh appends, replicated batches and replay after a start take the same path, so that all end in
the same state. The states check a batch before it is written; after that this module records it,
takes snapshots, and adds aborted transactions to the index of their segment.
"""

from brokers.protocol.records.batch import CONTROL_FLAG, Batch
from brokers.protocol.records.control import read_end_txn
from brokers.storage.files import Files
from brokers.storage.handles import Handles
from brokers.storage.log_config import LogConfig
from brokers.storage.producer_ids import SeenProducerIds
from brokers.storage.producer_snapshots import ProducerSnapshots
from brokers.storage.producer_state import CompletedTxn, ProducerStates
from brokers.storage.scan import Scan
from brokers.storage.segment import Segment
from brokers.storage.segments import Segments
from brokers.storage.txn_index import AbortedTxn


class ProducerNotes:
    """Producer states, their snapshots and the aborts that wait for an index. One per log."""

    __slots__ = ("_aborts", "indexed", "snapshot_offset", "snapshots", "states")

    def __init__(self, files: Files, folder: str, seen: SeenProducerIds) -> None:
        self.states = ProducerStates(seen)
        self.snapshots = ProducerSnapshots(files, folder)
        self.snapshot_offset: int | None = None  # of the newest usable one on disk
        self._aborts: list[tuple[Segment, CompletedTxn]] = []
        # Segments with entries that no ticket covers yet; often not the active one.
        self.indexed: set[Segment] = set()

    def note(self, segment: Segment, batch: Batch, base_offset: int, now_ms: int) -> bool:
        """Record a batch of a producer that is in the log; True if it aborted a transaction.

        The transaction holds readers back until `index_aborts`: a reader past it that does not find
        it in the index would take aborted records for committed ones.
        """
        aborted = _note(self.states, batch, base_offset, now_ms)
        if aborted is None:
            return False
        self._aborts.append((segment, aborted))
        return True

    @property
    def has_aborts(self) -> bool:
        """Whether aborts wait to be indexed."""
        return bool(self._aborts)

    @property
    def first_abort(self) -> int | None:
        """The offset of the oldest marker whose abort waits to be indexed.

        Recovery must begin there or before: no snapshot contains that transaction any more.
        """
        return self._aborts[0][1].last_offset if self._aborts else None

    def index_aborts(self) -> None:
        """Write waiting aborts to the transaction indexes; after an OSError the rest waits."""
        while self._aborts:
            segment, aborted = self._aborts[0]
            self.indexed.add(segment)
            segment.open_txn_index().append(
                AbortedTxn(
                    producer_id=aborted.producer_id,
                    first_offset=aborted.first_offset,
                    last_offset=aborted.last_offset,
                    last_stable_offset=aborted.last_stable_offset,
                )
            )
            self.states.complete(aborted)
            del self._aborts[0]

    def save(self, handles: Handles, offset: int) -> None:
        """Write and sync a snapshot of the states, which are those at `offset`."""
        fd = self.snapshots.write(offset, self.states)
        try:
            handles.sync(fd, self.snapshots.path(offset))
        finally:
            handles.files.close(fd)
        self.snapshot_offset = offset

    def rewind(self, segments: Segments, end_offset: int, config: LogConfig) -> None:
        """Restore the state at `end_offset` from the newest snapshot up to there and the log.

        Transaction indexes stay as they are: they have these aborts from when they happened, or
        from just before the log was cut.
        """
        self._aborts.clear()
        newest = self.snapshots.load_newest(self.states, at_least=0, at_most=end_offset)
        self.snapshot_offset = newest
        start_offset = 0 if newest is None else newest
        if start_offset >= end_offset:
            return
        for segment in segments.from_offset(start_offset):
            if segment.base_offset < end_offset:
                self._replay(segment, start_offset, end_offset, config)

    def _replay(
        self, segment: Segment, start_offset: int, end_offset: int, config: LogConfig
    ) -> None:
        first = segment.find_sound(max(start_offset, segment.base_offset), config)
        begin = segment.size if first is None else first.position
        while begin < segment.size:
            scan = Scan(
                segment.handles.files,
                segment.handles.open(segment.file),
                position=begin,
                stop=segment.size,
                next_offset=segment.base_offset,
            )
            for position, size, base_offset, _last, _epoch, timestamp, producer_id in scan:
                if base_offset >= end_offset:
                    return
                if producer_id >= 0 and base_offset >= start_offset:
                    batch = scan.batch(position, size)
                    aborted = _note(self.states, batch, base_offset, timestamp)
                    if aborted is not None:
                        self.states.complete(aborted)
            if scan.flaw is None:
                return
            # Batches of producers behind the damage count as well.
            begin = segment.pass_over(scan.position, scan.flaw)


def _note(
    states: ProducerStates, batch: Batch, base_offset: int, now_ms: int
) -> CompletedTxn | None:
    """Record a batch; return a transaction that it aborted, which is not completed yet."""
    if not batch.attributes & CONTROL_FLAG:
        states.update(batch, base_offset, now_ms)
        return None
    marker = read_end_txn(batch)
    completed = None if marker is None else states.update_marker(batch, base_offset, marker, now_ms)
    if completed is None or completed.is_aborted:
        return completed
    states.complete(completed)
    return None
