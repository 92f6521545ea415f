"""Random steps that Apache Kafka's own ProducerStateManager answered; ours answers the same."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import HEADER, Batch
from brokers.protocol.records.control import EndTxnMarker
from brokers.protocol.records.validation import Origin
from brokers.storage.producer_state import ProducerStates

STEPS = Path(__file__).with_name("producer_steps.txt")
EXPIRATION_MS = 1_000
ENTRY_SIZE = 46
EXCEPTIONS = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    ErrorCode.INVALID_PRODUCER_EPOCH: "InvalidProducerEpochException",
    ErrorCode.INVALID_TXN_STATE: "InvalidTxnStateException",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "TransactionCoordinatorFencedException",
}


def batch(producer: int, epoch: int, sequence: int, records: int, time: int, flags: int) -> Batch:
    header = HEADER.pack(
        *(0, 49, 0, 2, 0, flags, records - 1, time, time, producer, epoch, sequence, records)
    )
    return Batch(memoryview(bytearray(header)))


class Player:
    """Takes one step after the other, and answers in the words of the recording."""

    def __init__(self) -> None:
        self.states = ProducerStates()
        self.snapshots: dict[int, bytes] = {}

    def play(self, action: str, words: list[str]) -> str:
        try:
            answer: str = getattr(self, f"play_{action.lower()}")(*words)
        except KafkaError as error:
            answer = f"ERR {EXCEPTIONS[error.code]}"
        unstable = self.states.first_unstable_offset
        return f"{answer} |{-1 if unstable is None else unstable}"

    def play_d(self, *words: str) -> str:
        producer, epoch, sequence, records, time, is_txn = map(int, words[:6])
        new = batch(producer, epoch, sequence, records, time, 0x10 * is_txn)
        if words[6] != "REPLICATION":
            earlier = self.states.check(new, Origin[words[6]])
            if earlier is not None:
                return f"DUP {earlier.base_offset} {earlier.last_offset} {earlier.timestamp}"
        self.states.update(new, int(words[7]), time)
        return "OK"

    def play_m(self, *words: str) -> str:
        producer, epoch, coordinator_epoch, is_abort, version = map(int, words[:5])
        offset, time = int(words[6]), int(words[7])
        ending = batch(producer, epoch, -1, 1, time, 0x30)
        marker = EndTxnMarker(is_commit=not is_abort, coordinator_epoch=coordinator_epoch)
        if words[5] != "REPLICATION":
            self.states.check_marker(ending, marker, version)
        txn = self.states.update_marker(ending, offset, marker, time)
        if txn is None:
            return "OK"
        self.states.complete(txn)
        return (
            f"TXN {txn.producer_id} {txn.first_offset} {txn.last_offset} "
            f"{txn.last_stable_offset} {int(txn.is_aborted)}"
        )

    def play_h(self, offset: str) -> str:
        self.states.replicated_to(int(offset))
        return "OK"

    def play_e(self, time: str) -> str:
        self.states.expire(int(time), EXPIRATION_MS)
        return "OK"

    def play_s(self, offset: str) -> str:
        self.snapshots[int(offset)] = self.states.snapshot()
        return self.snapshots[int(offset)].hex()

    def play_l(self, _offset: str, time: str) -> str:
        newest = max(self.snapshots)
        self.states.load(self.snapshots[newest], "snapshot")
        self.states.expire(int(time), EXPIRATION_MS)
        return f"OK {newest}"


def recorded() -> Iterator[list[tuple[str, str]]]:
    """Runs of steps with their answers."""
    run: list[tuple[str, str]] = []
    for line in STEPS.read_text(encoding="ascii").splitlines():
        if line == "restart" and run:
            yield run
            run = []
        elif not line.startswith(("#", "restart")):
            step, _, answer = line.partition(" = ")
            run.append((step, answer))
    yield run


def sorted_entries(answer: str) -> tuple[list[bytes], int, str]:
    """A snapshot without its order and its checksum, which the order decides."""
    text, _, unstable = answer.partition(" |")
    data = bytes.fromhex(text)
    (count,) = struct.unpack_from(">i", data, 6)
    entries = [data[at : at + ENTRY_SIZE] for at in range(10, len(data), ENTRY_SIZE)]
    return sorted(entries), count, unstable


RUNS = list(recorded())


@pytest.mark.parametrize("run", RUNS, ids=range(len(RUNS)))
def test_every_answer_is_that_of_apache_kafka(run: list[tuple[str, str]]) -> None:
    player = Player()
    for number, (step, expected) in enumerate(run):
        action, *words = step.split(" ")
        answer = player.play(action, words)
        if action == "S":
            assert sorted_entries(answer) == sorted_entries(expected), f"step {number}: {step}"
        else:
            assert answer == expected, f"step {number}: {step}"
