"""What a log knows of its producers, kept in step with what is in the log.

One way for fresh appends, for what a leader sent, and for replay after a start, so that all end in
the same state. Whether a batch is welcome is asked of the states before it is written; here it is
noted, snapshots are taken, and aborted transactions go into the index of their segment.
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
    """Producer states, their snapshots and the aborts on the way to an index. One per log."""

    __slots__ = ("_aborts", "indexed", "snapshot_offset", "snapshots", "states")

    def __init__(self, files: Files, folder: str, seen: SeenProducerIds) -> None:
        self.states = ProducerStates(seen)
        self.snapshots = ProducerSnapshots(files, folder)
        self.snapshot_offset: int | None = None  # of the newest one on disk that may be used
        self._aborts: list[tuple[Segment, CompletedTxn]] = []
        # With entries that no flush has taken up yet; often that is not the active segment.
        self.indexed: set[Segment] = set()

    def note(self, segment: Segment, batch: Batch, base_offset: int, now_ms: int) -> bool:
        """Notes a batch that has a producer and is in the log; True if it aborted a transaction.

        That one goes on holding readers back until `index_aborts`: a reader past it that does not
        find it in the index would take aborted records for good.
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

        Recovery must begin there or before: no snapshot knows of that transaction any more.
        """
        return self._aborts[0][1].last_offset if self._aborts else None

    def index_aborts(self) -> None:
        """Writes what waits into the transaction indexes; after an OSError the rest still waits."""
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
        """Writes and syncs a snapshot of the states, which are those at `offset`."""
        fd = self.snapshots.write(offset, self.states)
        try:
            handles.sync(fd, self.snapshots.path(offset))
        finally:
            handles.files.close(fd)
        self.snapshot_offset = offset

    def rewind(self, segments: Segments, end_offset: int, config: LogConfig) -> None:
        """Makes the state at `end_offset`: the newest snapshot up to there, then the log behind it.

        Transaction indexes are left as they are: they have these aborts from when they happened,
        or from just before the log was cut.
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
            # What producers have said behind the damage counts as well.
            begin = segment.pass_over(scan.position, scan.flaw)


def _note(
    states: ProducerStates, batch: Batch, base_offset: int, now_ms: int
) -> CompletedTxn | None:
    """Notes a batch; returns a transaction that it aborted, which is not completed yet."""
    if not batch.attributes & CONTROL_FLAG:
        states.update(batch, base_offset, now_ms)
        return None
    marker = read_end_txn(batch)
    completed = None if marker is None else states.update_marker(batch, base_offset, marker, now_ms)
    if completed is None or completed.is_aborted:
        return completed
    states.complete(completed)
    return None
