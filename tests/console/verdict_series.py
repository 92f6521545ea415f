"""Scripted groups, second by second, as a broker's feed tells of them.

Each is a generator that writes its own rows into the feed once a second. Its story says what a page
may call the group, and from when on; seconds in between belong to neither part.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.fakes.broker_feed import NOW_MS, Feed

LASTS_S = 900
# What is neither right nor wrong: too little is known.
OPEN = frozenset({"OK", "Unknown"})


class Stage:
    """One group and one topic of the same name in the feed."""

    def __init__(self, feed: Feed, name: str, partitions: int) -> None:
        self.name = name
        self.second = 0
        self.random = random.Random(name)
        self.ends = [0] * partitions
        self.committed: dict[int, int] = {}
        self.rebalances = 0
        self._feed = feed
        self._joined = 0

    @property
    def now_ms(self) -> int:
        return NOW_MS + 1000 * self.second

    def write(self, per_second: float) -> None:
        """Append so many records to each partition, in uneven portions."""
        for index, end in enumerate(self.ends):
            rest = per_second % 1 > self.random.random()
            self.ends[index] = end + int(per_second) + rest
            self._feed.partition(self.name, index, end=self.ends[index])

    def commit(self, index: int, offset: int) -> None:
        self.committed[index] = min(offset, self.ends[index])
        self._feed.put(
            "commits", [self.name, self.name, index, self.committed[index], 0, self.now_ms]
        )

    def read(self, per_second: float, *, every_s: int = 5) -> None:
        """Commit what was read since the last commit, in all partitions."""
        if self.second % every_s == 0:
            for index in range(len(self.ends)):
                self.commit(index, self.committed.get(index, 0) + int(per_second * every_s))

    def join(self, members: int = 1, *, state: str = "Stable") -> None:
        """Give the group so many members, which divide its partitions."""
        for number in range(members, self._joined):
            self._feed.drop("members", self.name, f"{self.name}-{number}")
        for number in range(members):
            owned = [index for index in range(len(self.ends)) if index % members == number]
            row = [self.name, f"{self.name}-{number}", None, "app", "/10.0.0.1"]
            self._feed.put("members", [*row, [[self.name, owned]]])
        self._joined = members
        self.rebalances += members > 0
        row = [self.name, "classic", state if members else "Empty"]
        self._feed.put("groups", [*row, 1, members, self.rebalances])

    def drop_topic(self) -> None:
        for index in range(len(self.ends)):
            self._feed.drop("rows", self.name, index)
        for index in self.committed:
            self._feed.drop("commits", self.name, self.name, index)
        self._feed.put("members", [self.name, f"{self.name}-0", None, "app", "/10.0.0.1", []])


Script = Callable[[Stage], Iterator[None]]


@dataclass(frozen=True, kw_only=True)
class Story:
    script: Script
    # From which second on the page may only have one of these words, up to the next second.
    words: dict[int, frozenset[str]]
    # What the page of the group says at the end.
    says: tuple[str, ...] = ()
    partitions: int = 1
    # How often its word may change at most.
    changes: int = 3


def keeps_up(stage: Stage) -> Iterator[None]:
    stage.join()
    while True:
        stage.write(40)
        if stage.second % 5 == 0:
            stage.commit(0, stage.ends[0] - stage.random.randrange(40))
        yield


def reads_less(stage: Stage) -> Iterator[None]:
    """Commit in batches of half a minute, each a dip, of three fifths of what arrives."""
    stage.join()
    while True:
        stage.write(49)
        stage.read(28.2, every_s=30)
        yield


def reads_a_little_less(stage: Stage) -> Iterator[None]:
    stage.join()
    while True:
        stage.write(50)
        stage.read(47, every_s=5)
        yield


def in_bursts(stage: Stage) -> Iterator[None]:
    """Stand still for fifty seconds of ninety, and catch up in the rest."""
    stage.join()
    place = 0.0
    while True:
        stage.write(100)
        place = min(stage.ends[0], place + (30 if stage.second % 90 < 50 else 400))
        stage.commit(0, int(place))
        yield


def flapping(stage: Stage) -> Iterator[None]:
    """Members join and leave each twelve seconds, and nothing is ever committed."""
    while True:
        if stage.second % 12 == 0:
            stage.join(2 if stage.second % 24 else 1, state="PreparingRebalance")
        stage.write(15)
        yield


def never_commits(stage: Stage) -> Iterator[None]:
    stage.join()
    while True:
        stage.write(20)
        yield


def commits_one_of_three(stage: Stage) -> Iterator[None]:
    stage.join()
    while True:
        stage.write(10)
        if stage.second % 5 == 0:
            stage.commit(0, stage.ends[0])
        yield


def reset_while_empty(stage: Stage) -> Iterator[None]:
    """Read for two minutes and leave; five minutes later an operator resets it to the end."""
    stage.join()
    while stage.second < 120:
        stage.write(3.4)
        if stage.second % 5 == 0:
            stage.commit(0, stage.ends[0])
        yield
    stage.join(0)
    while True:
        stage.write(3.4)
        if stage.second == 420:
            stage.commit(0, stage.ends[0])
        yield


def set_again_while_empty(stage: Stage) -> Iterator[None]:
    """Read for two minutes and leave; a script sets the offsets near the end each minute."""
    stage.join()
    while True:
        stage.write(6)
        if stage.second == 120:
            stage.join(0)
        if stage.second < 120 and stage.second % 5 == 0:
            stage.commit(0, stage.ends[0])
        elif stage.second > 120 and stage.second % 45 == 0:
            stage.commit(0, stage.ends[0] - 30)
        yield


def commits_late(stage: Stage) -> Iterator[None]:
    """Commit in a second partition, which has 30,000 records, near the end for the first time."""
    stage.ends[1] = 30_000
    stage.join()
    while True:
        stage.write(10)
        if stage.second % 5 == 0:
            stage.commit(0, stage.ends[0])
            if stage.second >= LASTS_S - 60:
                stage.commit(1, stage.ends[1])
        yield


def poisoned(stage: Stage) -> Iterator[None]:
    """Commit the same offset again and again from the third minute on."""
    stage.join()
    while True:
        stage.write(20)
        if stage.second % 5 == 0:
            stage.commit(0, stage.ends[0] if stage.second < 120 else stage.committed[0])
        yield


def paused(stage: Stage) -> Iterator[None]:
    stage.join()
    while True:
        stage.write(20)
        if stage.second < 120 and stage.second % 5 == 0:
            stage.commit(0, stage.ends[0])
        yield


def catching_up(stage: Stage) -> Iterator[None]:
    stage.ends[0] = 60_000
    stage.join()
    while True:
        stage.write(20)
        stage.read(100)
        yield


def producer_stops(stage: Stage) -> Iterator[None]:
    stage.join()
    while True:
        stage.write(30 if stage.second < 200 else 0)
        if stage.second % 5 == 0 and stage.committed.get(0) != stage.ends[0]:
            stage.commit(0, stage.ends[0])
        yield


def topic_deleted(stage: Stage) -> Iterator[None]:
    stage.join()
    while stage.second < 200:
        stage.write(30)
        if stage.second % 5 == 0:
            stage.commit(0, stage.ends[0])
        yield
    stage.drop_topic()
    while True:
        yield


def assigns_itself(stage: Stage) -> Iterator[None]:
    """Commit without a membership, as sinks of connectors do; end at the tenth minute."""
    stage.join(0)
    while True:
        stage.write(10)
        if stage.second < 600 and stage.second % 10 == 0:
            stage.commit(0, stage.ends[0] - 5)
        yield


def stops_and_comes_back(stage: Stage) -> Iterator[None]:
    """Crash after two minutes; come back after eight, and read what waits."""
    stage.join()
    while True:
        stage.write(20)
        if stage.second == 120:
            stage.join(0)
        if stage.second == 480:
            stage.join()
        if stage.second < 120:
            stage.read(20)
        elif stage.second >= 480:
            stage.read(60)
        yield


def words(*known: str) -> frozenset[str]:
    return frozenset(known)


# A word may come some seconds before or after it is due, since windows end when commits come.
STORIES = {
    "keeps-up": Story(script=keeps_up, words={10: words("OK")}, changes=0),
    "reads-less": Story(
        script=reads_less,
        words={0: OPEN, 180: words("Unknown", "Falling behind"), 360: words("Falling behind")},
        says=("does not catch up", "records/s while 49", "The lag has grown for some 5 min"),
        changes=2,
    ),
    "reads-a-little-less": Story(
        script=reads_a_little_less,
        words={0: OPEN, 270: words("Unknown", "Falling behind"), 420: words("Falling behind")},
        changes=2,
    ),
    "in-bursts": Story(script=in_bursts, words={10: words("OK")}, changes=0),
    "flapping": Story(
        script=flapping,
        words={0: words("Unknown"), 120: words("Unknown", "Never committed", "Rebalancing")}
        | {210: words("Rebalancing")},
        says=("times in the last 5 min", "1 never committed, up to"),
        changes=2,
    ),
    "never-commits": Story(
        script=never_commits,
        words={0: words("Unknown"), 115: words("Unknown", "Never committed")}
        | {130: words("Never committed")},
        says=("0 of 1 owned partition has commits; 1 never committed, up to 18,000",),
        changes=1,
    ),
    "commits-one-of-three": Story(
        script=commits_one_of_three,
        partitions=3,
        words={0: words("Unknown"), 115: words("Unknown", "Never committed")}
        | {130: words("Never committed")},
        says=("1 of 3 owned partitions has commits; 2 never committed, up to 18,000",),
        changes=1,
    ),
    "reset-while-empty": Story(
        script=reset_while_empty,
        words={10: words("OK"), 120: words("No members"), 235: words("No members", "Stopped")}
        | {255: words("Stopped"), 420: words("No members"), 535: words("No members", "Stopped")}
        | {555: words("Stopped")},
        says=("it has no members", "nothing reads them"),
        changes=4,
    ),
    "set-again-while-empty": Story(
        script=set_again_while_empty,
        words={10: words("OK"), 120: words("No members"), 235: words("No members", "Stopped")}
        | {255: words("Stopped")},
        says=("it has no members", "nothing reads them"),
        changes=2,
    ),
    "commits-late": Story(
        script=commits_late,
        partitions=2,
        words={130: words("Never committed"), LASTS_S - 65: words("Never committed", "OK")}
        | {LASTS_S - 30: words("OK")},
        changes=2,
    ),
    "poisoned": Story(
        script=poisoned,
        words={10: words("OK"), 120: words("OK", "Unknown", "Stalled"), 255: words("Stalled")},
        changes=2,
    ),
    "paused": Story(
        script=paused,
        words={10: words("OK"), 120: words("OK", "Unknown", "Stopped"), 255: words("Stopped")},
        says=("commits no more",),
        changes=2,
    ),
    "catching-up": Story(
        script=catching_up,
        words={0: words("Unknown", "Catching up"), 120: words("Catching up")}
        | {700: words("Catching up", "OK"), 780: words("OK")},
        changes=2,
    ),
    "producer-stops": Story(
        script=producer_stops,
        words={10: words("OK")},
        says=("it reads 0 records/s while 0 arrive",),
        changes=0,
    ),
    "topic-deleted": Story(
        script=topic_deleted, words={10: words("OK"), 200: words("Unknown")}, changes=1
    ),
    "assigns-itself": Story(
        script=assigns_itself,
        words={60: words("OK"), 700: words("OK", "No members", "Stopped"), 735: words("Stopped")},
        changes=1,
    ),
    "stops-and-comes-back": Story(
        script=stops_and_comes_back,
        words={10: words("OK"), 120: words("No members"), 235: words("No members", "Stopped")}
        | {255: words("Stopped"), 480: words("Unknown", "Catching up")}
        | {570: words("Catching up", "OK"), 700: words("OK")},
        changes=5,
    ),
}
