"""Answers to the story, kept small: an answer to `validate` is told by what differs from the first.

`python -m tests.connectors.rest.connect_answers URL` asks a worker of Kafka Connect and writes
what it answers into the file that tests compare with.
"""

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.connectors.rest.connect_story import Step, place_of, plain, steps

FILE: Final = Path(__file__).with_name("connect-4.3.json")
WAIT_SECONDS: Final = 30.0
# What a worker answers that is still busy with the change before.
BUSY: Final = {
    500: ("Failed to start connector",),
    409: ("Cannot complete request momentarily", "Request cannot be completed because a rebalance"),
}
# A status, a Location, a body.
Answer = tuple[int, str, Any]
Ask = Callable[[Step], Answer]


@dataclass
class Story:
    """Tells answers one after the other."""

    ask: Ask
    first: dict[str, Any] = field(default_factory=dict)

    def answers(self) -> list[Any]:
        return [[*step, *self._told(step)] for step in steps() if step[0] != "WAIT"]

    def _told(self, step: Step) -> list[Any]:
        status, location, body = self.ask(step)
        return [status, place_of(location), self._small(plain(body))]

    def _small(self, body: Any) -> Any:
        if not isinstance(body, dict) or "keys" not in body:
            return body
        keys: dict[str, Any] = body["keys"]
        if body["name"] not in self.first:
            self.first[body["name"]] = keys
            return body
        base: dict[str, Any] = self.first[body["name"]]
        changed = {name: row for name, row in keys.items() if base.get(name) != row}
        gone = sorted(base.keys() - keys.keys())
        return {**body, "keys": changed, "gone": gone}


def asked(url: str, step: Step) -> Answer:
    method, address, body = step
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 - the address of a worker of this test
        f"{url}{address}", method=method, data=data, headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:  # noqa: S310 - as above
            status, headers, text = answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        status, headers, text = error.code, error.headers, error.read()
    return status, headers.get("Location", ""), json.loads(text) if text else None


def waited(url: str, step: Step) -> None:
    """Wait until an address tells what a step names."""
    _, address, words = step
    end = time.monotonic() + WAIT_SECONDS
    # Each question takes some milliseconds there.
    while words not in json.dumps(asked(url, ("GET", address, None))[2]):
        assert time.monotonic() < end, f"{address} did not tell {words}"


def settled(url: str, step: Step) -> Answer:
    """Ask again where a worker of Kafka Connect drops what it was asked for.

    A change of state that is still going on is given up for the next one, which fails the first.
    """
    end = time.monotonic() + WAIT_SECONDS
    while True:
        status, location, body = asked(url, step)
        if status not in BUSY or not str(body.get("message")).startswith(BUSY[status]):
            return status, location, body
        assert time.monotonic() < end, f"{step} was not done: {body}"


def of_worker(url: str) -> list[Any]:
    """Return the answers of a worker of Kafka Connect."""
    story = Story(ask=lambda step: settled(url, step))
    found = []
    for step in steps():
        if step[0] == "WAIT":
            waited(url, step)
        else:
            found.append([*step, *story._told(step)])  # noqa: SLF001 - in turns with the waits
    return found


if __name__ == "__main__":
    told = of_worker(sys.argv[1])
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in told)
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
