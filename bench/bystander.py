"""An active client beside whatever else is asked of a broker, in a process of its own.

Sends small produces at a steady rate whether or not earlier ones were answered, as many clients
together do, so that a broker that stands still is felt by every request that falls into that time.

`python -m bench.bystander` takes a job as one line of JSON on its standard input, goes on until
that is closed, and prints what it felt.
"""

import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Final

from bench.blaster import RECEIVE_BYTES, SILENCE_SECONDS, Job, Link, produce_requests
from bench.broker_targets import ROOT, Target

RATE: Final = 1_000  # requests a second
# Before and behind what is measured.
CALM_SECONDS: Final = 0.5
END_SECONDS: Final = 60.0


@dataclass(slots=True, kw_only=True)
class Felt:
    requests: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0


@contextmanager
def bystander(target: Target, topic: str) -> Iterator[Felt]:
    """Lets the client work until the block ends; what it felt is there afterwards."""
    felt = Felt()
    job = Job(
        host=target.host,
        port=target.port,
        kind="produce",
        connections=1,
        seconds=0.0,
        topic=topic,
        rate=RATE,
    )
    with subprocess.Popen(
        [sys.executable, "-m", "bench.bystander"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as child:
        assert child.stdin is not None
        child.stdin.write(json.dumps(asdict(job)) + "\n")
        child.stdin.flush()
        time.sleep(CALM_SECONDS)
        try:
            yield felt
            time.sleep(CALM_SECONDS)
        finally:
            said, _nothing = child.communicate(timeout=END_SECONDS)
        assert child.returncode == 0, "the active client has failed"
        for name, figure in json.loads(said).items():
            setattr(felt, name, figure)


def stand_by(job: Job, end_fd: int) -> Felt:
    """Do the job in this process until the other end of `end_fd` is closed."""
    link = Link((job.host, job.port), produce_requests(job, 0))
    buffer = memoryview(bytearray(RECEIVE_BYTES))
    poll = select.poll()
    poll.register(link.socket, select.POLLIN)
    poll.register(end_fd, select.POLLIN | select.POLLHUP)
    gap, times, is_over = int(1e9 / job.rate), list[int](), False
    due = heard = time.perf_counter_ns()
    while not is_over or link.sent_ns:
        now = time.perf_counter_ns()
        while due <= now and not is_over:
            link.send()
            due += gap
        wait_ms = SILENCE_SECONDS * 1e3 if is_over else max(0, due - now) / 1e6
        for fd, _event in poll.poll(wait_ms):
            if fd == end_fd:
                is_over = True
                poll.unregister(end_fd)
                continue
            _count, answers = link.receive(buffer)
            heard = time.perf_counter_ns()
            times += [heard - link.sent_ns.popleft() for _ in range(answers)]
        if time.perf_counter_ns() - heard > SILENCE_SECONDS * 1e9:
            raise TimeoutError(f"no answer for {SILENCE_SECONDS} s")
    link.socket.close()
    times.sort()
    return Felt(
        requests=len(times),
        p50_ms=times[len(times) // 2] / 1e6,
        p99_ms=times[len(times) * 99 // 100] / 1e6,
        max_ms=times[-1] / 1e6,
    )


def main() -> None:
    job = Job(**json.loads(sys.stdin.readline()))
    sys.stdout.write(json.dumps(asdict(stand_by(job, sys.stdin.fileno()))))


if __name__ == "__main__":
    main()
