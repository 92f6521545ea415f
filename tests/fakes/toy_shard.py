"""The smallest shard that needs all of the runtime: sums and notes per subject, waiters, timers.

A record's key is `+subject`, and its value is added to the sum, or `=subject`, and its value is the
sum; a key that begins otherwise is of a kind that nobody knows, and a value that is no number
cannot be read.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from brokers.cluster.image import ClusterImage
from brokers.coordination.shard import (
    PARKED,
    CancelTimer,
    Claim,
    Job,
    Operation,
    Outcome,
    Record,
    Reply,
    SetTimer,
    Soft,
    Ticket,
    TimerKey,
)
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.schema import Message, int64

SESSION_MS = 1_000


class Number(Message, versions=(0, 0)):
    """What a toy shard answers."""

    value: int = int64("The sum.")


@dataclass(frozen=True, slots=True)
class Waits:
    """Somebody waits for a subject, or all who did are answered."""

    subject: str
    ticket: Ticket | None


ToyOperation = Operation["ToyShard"]
ToyOutcome = Outcome["ToyShard"]


class ToyShard:
    """See the module."""

    def __init__(self, index: int = 0, image: ClusterImage | None = None) -> None:
        self.index = index
        self.image = image
        self.sums: dict[str, int] = {}
        self.waiting: dict[str, list[Ticket]] = {}
        self.replayed: list[tuple[bytes, bytes | None, int]] = []
        self.images: list[tuple[int, int]] = []
        self.is_broken = False  # replay fails, as a bug would make it
        self.on_chore: Callable[[], None] = lambda: None  # told of each that is found
        self.on_settled: Callable[[], None] = lambda: None  # told of each sum that was loaded

    def replay(self, record: Record, timestamp: int) -> None:
        kind, subject = record.key[:1], record.key[1:].decode()
        if kind not in b"+=":
            return
        if self.is_broken:
            raise RuntimeError("a bug")
        if record.value is None:
            self.sums.pop(subject, None)
            return
        try:
            number = int(record.value)
        except ValueError:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"{record.value!r} is not a number"
            ) from None
        self.sums[subject] = number + (self.sums.get(subject, 0) if kind == b"+" else 0)
        self.replayed.append((record.key, record.value, timestamp))

    def apply(self, soft: Soft) -> None:
        assert isinstance(soft, Waits)
        if soft.ticket is None:
            self.waiting.pop(soft.subject, None)
        else:
            self.waiting.setdefault(soft.subject, []).append(soft.ticket)

    def loaded(self, now_ms: int) -> Iterable[ToyOutcome]:
        for name in self.sums:
            self.on_settled()
            yield Outcome(timers=(SetTimer(TimerKey("session", name), SESSION_MS),))

    def timer_fired(self, key: TimerKey) -> ToyOperation:
        return put(key.subject, -1)

    def image_changed(
        self, before: ClusterImage, after: ClusterImage, now_ms: int
    ) -> Iterable[ToyOperation]:
        self.images.append((before.version, after.version))
        self.image = after
        return [add("images", 1)]

    def chores(self, now_ms: int) -> Iterable[ToyOperation]:
        for subject in tuple(self.sums):
            self.on_chore()
            yield add(subject, 100)

    def unloaded(self) -> Iterable[Reply]:
        error = KafkaError(ErrorCode.NOT_COORDINATOR, "said by the shard")
        return [Reply(ticket, error) for waiting in self.waiting.values() for ticket in waiting]


def add(subject: str, by: int, *, copies: int = 1) -> ToyOperation:
    """Shared: adds to the sum, and answers what is added."""

    def run(_shard: ToyShard, _now_ms: int, _ticket: Ticket) -> ToyOutcome:
        if by == 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "nothing to add")
        record = Record(b"+" + subject.encode(), b"%d" % by)
        return Outcome(records=(record,) * copies, response=Number(value=by))

    return Operation(name="add", subject=subject, claim=Claim.SHARED, run=run)


def put(subject: str, value: int) -> ToyOperation:
    """Exclusive: sets the sum, and answers what it was."""

    def run(shard: ToyShard, _now_ms: int, _ticket: Ticket) -> ToyOutcome:
        record = Record(b"=" + subject.encode(), b"%d" % value)
        was = shard.sums.get(subject, 0)
        return Outcome(records=(record,), response=Number(value=was))

    return Operation(name="put", subject=subject, claim=Claim.EXCLUSIVE, run=run)


def put_in_steps(subject: str, steps: int) -> ToyOperation:
    """Exclusive: sets the sum to each number up to this one, a batch for each; answers the last."""

    def step(number: int) -> ToyOperation:
        def run(_shard: ToyShard, _now_ms: int, _ticket: Ticket) -> ToyOutcome:
            record = Record(b"=" + subject.encode(), b"%d" % number)
            if number < steps:
                return Outcome(records=(record,), then=step(number + 1))
            return Outcome(records=(record,), response=Number(value=steps))

        return Operation(name="put_in_steps", subject=subject, claim=Claim.EXCLUSIVE, run=run)

    return step(1)


def wait(subject: str) -> ToyOperation:
    """Exclusive, and answered by `wake`."""

    def run(_shard: ToyShard, _now_ms: int, ticket: Ticket) -> ToyOutcome:
        return Outcome(soft=(Waits(subject, ticket),), response=PARKED)

    return Operation(name="wait", subject=subject, claim=Claim.EXCLUSIVE, run=run)


def wait_noted(subject: str) -> ToyOperation:
    """The same with a record."""

    def run(_shard: ToyShard, _now_ms: int, ticket: Ticket) -> ToyOutcome:
        record = Record(b"+" + subject.encode(), b"1")
        return Outcome(records=(record,), soft=(Waits(subject, ticket),), response=PARKED)

    return Operation(name="wait_noted", subject=subject, claim=Claim.EXCLUSIVE, run=run)


def wake(subject: str, value: int) -> ToyOperation:
    """Exclusive: sets the sum, and answers everybody who waits with it."""

    def run(shard: ToyShard, _now_ms: int, _ticket: Ticket) -> ToyOutcome:
        waiting = shard.waiting.get(subject, ())
        return Outcome(
            records=(Record(b"=" + subject.encode(), b"%d" % value),),
            soft=(Waits(subject, None),),
            response=Number(value=len(waiting)),
            replies=tuple(Reply(ticket, Number(value=value)) for ticket in waiting),
        )

    return Operation(name="wake", subject=subject, claim=Claim.EXCLUSIVE, run=run)


def touch(subject: str, after_ms: int = SESSION_MS) -> ToyOperation:
    """Claims nothing: puts the subject's timer off, or cancels it where it is 0."""
    key = TimerKey("session", subject)
    timer = SetTimer(key, after_ms) if after_ms else CancelTimer(key)

    def run(shard: ToyShard, _now_ms: int, _ticket: Ticket) -> ToyOutcome:
        return Outcome(timers=(timer,), response=Number(value=shard.sums.get(subject, 0)))

    return Operation(name="touch", subject=subject, claim=Claim.NONE, run=run)


def beat(subject: str, value: int, after_ms: int) -> ToyOperation:
    """Exclusive: sets the sum; to ask for it puts the subject's timer off."""
    operation = put(subject, value)
    operation.heard = lambda _shard: SetTimer(TimerKey("session", subject), after_ms)
    return operation


def put_unless(subject: str, value: int) -> ToyOperation:
    """Looks first, and claims the subject only where the sum is another one."""

    def run(shard: ToyShard, _now_ms: int, _ticket: Ticket) -> ToyOutcome | None:
        if shard.sums.get(subject) == value:
            return Outcome(response=Number(value=value))
        return None

    otherwise = put(subject, value)
    return Operation(
        name="put_unless", subject=subject, claim=Claim.NONE, run=run, otherwise=otherwise
    )


def count_slowly(subject: str, steps: int) -> ToyOperation:
    """Starts a job, at whose end the sum is the number of its steps."""

    def walk() -> Iterator[None]:
        for _ in range(steps):
            yield

    job: Job[ToyShard] = Job(key=subject, steps=walk, done=lambda: put(subject, steps))

    def run(_shard: ToyShard, _now_ms: int, _ticket: Ticket) -> ToyOutcome:
        return Outcome(jobs=(job,), response=Number(value=steps))

    return Operation(name="count_slowly", subject=subject, claim=Claim.NONE, run=run)


def broken(subject: str, claim: Claim = Claim.SHARED) -> ToyOperation:
    def run(_shard: ToyShard, _now_ms: int, _ticket: Ticket) -> ToyOutcome:
        raise RuntimeError("a bug")

    return Operation(name="broken", subject=subject, claim=claim, run=run)
