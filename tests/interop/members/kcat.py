"""A member of a group with kcat, `-G`: another program, whose words this one turns into lines.

kcat prints a record to one pipe and a rebalance to another, and writes each at once. The pipe of
the records is small and read at a pace, so kcat waits for us; before a revoke is told, what was
printed before it is. It commits by itself, every five seconds whatever it is told (a legacy topic
property of librdkafka shadows `auto.commit.interval.ms`), so no line says committed.
"""

import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.interop.members.journal import POLL_SECONDS, STDOUT, Job, Journal, Orders, Pace

HEARTBEATS_PER_SESSION = 6
PIPE_BYTES = 4096
# How often kcat is looked at until it may leave, and how long it may take: the machine is shared.
LOOK_MS = 5
LEAVE_SECONDS = 60
UNPACED = 1 << 30
# kcat must not outlive who looks after it, where Linux can see to that.
TIED = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
REBALANCED = re.compile(r"% Group .* rebalanced .*: (assigned|revoked):(.*)")
AT_END = re.compile(r"% Reached end of topic .* \[(\d+)\] at offset")
PARTITION = re.compile(r"\[(\d+)\]")


class Member:
    def __init__(self, job: Job, orders: Orders) -> None:
        assert job.protocol == "classic", f"kcat has no protocol {job.protocol!r}"
        self._orders = orders
        self._journal = Journal()
        self._pace = Pace(job.per_second)
        properties = {
            "session.timeout.ms": job.session_ms,
            "heartbeat.interval.ms": job.session_ms // HEARTBEATS_PER_SESSION,
            "auto.offset.reset": "earliest",
            **job.settings,
        }
        options = [part for each in properties.items() for part in ("-X", "{}={}".format(*each))]
        self._kcat = subprocess.Popen(
            [
                *TIED,
                "kcat",
                "-b",
                job.bootstrap,
                "-u",
                *options,
                "-f",
                "%p %o\n",
                "-G",
                job.group,
                job.topic,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._kcat.stdout is not None
        assert self._kcat.stderr is not None
        self._records, self._words = self._kcat.stdout.fileno(), self._kcat.stderr.fileno()
        fcntl.fcntl(self._records, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        for each in (self._records, self._words):
            os.set_blocking(each, False)
        self._record_part = self._word_part = b""
        self._partitions: set[int] = set()
        self._at_end: set[int] = set()

    def run(self) -> None:
        has_more = True
        while has_more and not self._orders.is_over:
            has_more = self._has_more()
        if self._orders.is_to_kill:
            self._kcat.kill()
            self._kcat.wait()
            # What it could still print, it printed before its end.
            dead_ns = time.monotonic_ns()
            self._take_records(ns=dead_ns)
            self._journal.tell("killed", ns=dead_ns)
            return
        self._wait_until_it_may_leave()
        self._kcat.send_signal(signal.SIGTERM)
        # What it still prints as it leaves is taken without delay.
        self._pace = Pace(UNPACED)
        while has_more:
            has_more = self._has_more()
        self._journal.closing()
        assert self._kcat.wait() == 0, f"kcat ended with {self._kcat.returncode}"

    def _wait_until_it_may_leave(self) -> None:
        """Wait until kcat prints a record into the full pipe, or has printed all there is.

        A record that comes while kcat waits in its poll and was told to leave is committed and not
        printed: `consume_cb` of kcat 1.7.1 looks at `conf.run` after librdkafka stored the offset.
        """
        poll = select.poll()
        poll.register(self._words, select.POLLIN)
        deadline = time.monotonic() + LEAVE_SECONDS
        while not self._is_printing() and not self._partitions <= self._at_end:
            assert time.monotonic() < deadline, f"kcat printed nothing for {LEAVE_SECONDS} s"
            if poll.poll(LOOK_MS):
                assert self._take_words(), "kcat ended before it was told to leave"

    def _is_printing(self) -> bool:
        """Tell whether kcat stands in a call whose first argument is standard output: write."""
        call = Path(f"/proc/{self._kcat.pid}/syscall").read_text(encoding="ascii").split()
        return len(call) > 1 and int(call[1], 16) == STDOUT

    def _has_more(self) -> bool:
        """Wait for one of the pipes for a moment; return whether kcat may say anything more."""
        poll = select.poll()
        poll.register(self._words, select.POLLIN)
        left = self._pace.left()
        if left <= 0:
            poll.register(self._records, select.POLLIN)
        found = poll.poll(1000 * (POLL_SECONDS if left <= 0 else min(left, POLL_SECONDS)))
        ready = {number for number, _ in found}
        if self._words in ready and not self._take_words():
            self._take_records()
            return False
        if self._records in ready:
            self._take_records()
        return True

    def _take_words(self) -> bool:
        """Tell the rebalances that kcat printed; return whether it may print more."""
        data = _read(self._words)
        if data is None:
            return False
        *lines, self._word_part = (self._word_part + data).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            if found := REBALANCED.match(text):
                partitions = [int(number) for number in PARTITION.findall(found[2])]
                self._at_end.clear()
                if found[1] == "revoked":
                    self._partitions.clear()
                    self._take_records()
                    self._journal.revoked(partitions)
                else:
                    self._partitions.update(partitions)
                    self._journal.assigned(partitions)
            elif found := AT_END.match(text):
                self._at_end.add(int(found[1]))
        return True

    def _take_records(self, *, ns: int | None = None) -> None:
        while data := _read(self._records):
            *lines, self._record_part = (self._record_part + data).split(b"\n")
            for line in lines:
                partition, offset = line.split()
                self._journal.note(int(partition), int(offset))
            self._pace.spend(len(lines))
        self._journal.tell_read(ns=ns)


def _read(pipe: int) -> bytes | None:
    """Return what is there, perhaps nothing; None at the end."""
    try:
        return os.read(pipe, PIPE_BYTES) or None
    except BlockingIOError:
        return b""


def main() -> None:
    orders = Orders()
    Member(orders.job, orders).run()


if __name__ == "__main__":
    main()
