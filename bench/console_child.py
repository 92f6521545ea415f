"""A collector over replayed feeds, for the suite `console`: says what it cost."""

import gc
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bench.console_feeds import BROKERS, Feeds, Size

NOW_MS: Final = 1_700_000_000_000
LOOK_SECONDS: Final = 3
GARBAGE_THRESHOLD: Final = 100_000


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "gateway.settings"
    # The real one has it in memory.
    import django  # noqa: PLC0415

    django.setup()
    gc.set_threshold(GARBAGE_THRESHOLD, *gc.get_threshold()[1:])
    sys.stdout.write(json.dumps(Replay(json.loads(sys.stdin.readline())).run()))


class Replay:
    def __init__(self, job: Mapping[str, int]) -> None:
        # Imported late: the process is measured with Django, which comes first.
        from console.monitoring.collector import Collector  # noqa: PLC0415
        from console.monitoring.samples import Samples  # noqa: PLC0415

        self._job = job
        names = ("topics", "partitions", "groups", "committed")
        self._feeds = Feeds(Size(**{name: job[name] for name in names}))
        self._folder = tempfile.TemporaryDirectory()
        self._samples = Samples(Path(self._folder.name) / "samples.db")
        self._collector = Collector("run")
        self._collector.set_brokers({each: f"broker-{each}" for each in range(BROKERS)})
        self._now_ms = NOW_MS
        self._number = 0
        self._longest_look = 0.0
        self._waiting: Iterator[Any] = iter(())

    def run(self) -> dict[str, float]:
        began = time.process_time()
        for broker in range(BROKERS):
            self._take(broker, self._feeds.snapshot(broker, self._now_ms))
        self._collector.look_at_once(self._now_ms)
        first_s = time.process_time() - began
        seconds = self._job["seconds"]
        moving = self._spend(seconds, self._job["moving"])
        resting = self._spend(seconds, 0)
        whole = sum(len(piece) for piece in self._collector.deltas.since("", 0))
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {
            "first_s": first_s,
            "moving_share": moving / seconds,
            "resting_share": resting / seconds,
            "longest_look_ms": self._longest_look * 1000,
            "whole_mb": whole / 2**20,
            "peak_mb": peak_mb,
            "hour_mb": self._fill_an_hour(),
        }

    def _spend(self, seconds: int, moving: int) -> float:
        """Return the CPU seconds of so many seconds of a cluster, its making up left out."""
        spent = 0.0
        for second in range(seconds):
            self._now_ms += 1000
            texts = [self._feeds.step(broker, moving, self._now_ms) for broker in range(BROKERS)]
            began = time.process_time()
            for broker, text in enumerate(texts):
                self._take(broker, text)
            if second % LOOK_SECONDS == 0:
                look_began = time.process_time()
                self._collector.look_at_once(self._now_ms)
                self._longest_look = max(self._longest_look, time.process_time() - look_began)
                # What one web server asks for.
                self._number = self._ask(self._number)
            if second % 10 == 0:
                self._sample()
            self._write(500)
            spent += time.process_time() - began
        return spent

    def _ask(self, number: int) -> int:
        for piece in self._collector.deltas.since("run", number):
            piece.encode()
        return self._collector.deltas.number

    def _take(self, broker: int, text: str) -> None:
        self._collector.take(broker, json.loads(text), now_ms=self._now_ms)

    def _sample(self) -> None:
        full = self._collector.sample(self._now_ms)
        if full:
            self._write(sys.maxsize)
            self._waiting = (series for block in full for series in block.series())

    def _write(self, number: int) -> None:
        portion = [series for _place, series in zip(range(number), self._waiting, strict=False)]
        if portion:
            self._samples.add(portion)

    def _fill_an_hour(self) -> float:
        for _sample in range(360):
            self._now_ms += 10_000
            self._take(0, self._feeds.step(0, self._job["moving"], self._now_ms))
            self._sample()
        self._write(sys.maxsize)
        used = self._samples.used_bytes()
        self._samples.close()
        self._folder.cleanup()
        return used / 2**20


if __name__ == "__main__":
    main()
