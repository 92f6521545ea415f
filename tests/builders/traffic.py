"""Workers of a gateway that report the counts of a test."""

from gateway.rest.home_traffic import HomeTraffic, NoTraffic, add_up
from gateway.rest.traffic import Counter


class Workers:
    def __init__(self) -> None:
        self.counter = Counter()
        self.silent: list[str] = []
        self.failure = ""

    def read(self) -> HomeTraffic:
        if self.failure:
            raise NoTraffic(self.failure)
        return add_up({"web": self.counter.recent()}, self.silent)
