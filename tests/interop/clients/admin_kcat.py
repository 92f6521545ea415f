"""kcat as a door of the admin table: it lists metadata and looks offsets up."""

import json
import subprocess
from typing import Any

from tests.interop.clients.admin import SECONDS, Described, Refused

# kcat prints an error's words only.
CODES = {
    "Broker: Unknown topic or partition": 3,
    "Broker: API version not supported": 35,
}


class KcatDoor:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def close(self) -> None:
        """Nothing to do: no program runs between two calls."""

    def _run(self, *options: str) -> str:
        done = subprocess.run(
            ["kcat", "-b", self._bootstrap, *options],
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        for words, code in CODES.items():
            if done.returncode and words in done.stderr:
                raise Refused(code, done.stderr)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _topics(self, *options: str) -> dict[str, Any]:
        told = json.loads(self._run("-L", "-J", *options))
        return {each["topic"]: each for each in told["topics"]}

    def has_topic(self, topic: str) -> bool:
        return topic in self._topics()

    def describe_topic(self, topic: str) -> Described:
        found = self._topics("-t", topic)[topic]
        if words := found.get("error"):
            raise Refused(CODES[words])
        return [
            (
                each["partition"],
                each["leader"],
                [node["id"] for node in each["replicas"]],
                [node["id"] for node in each["isrs"]],
            )
            for each in found["partitions"]
        ]

    def cluster(self) -> tuple[int, bool, bool]:
        told = json.loads(self._run("-L", "-J"))
        ids = [each["id"] for each in told["brokers"]]
        # It shows no cluster id.
        return len(ids), told["controllerid"] in ids, True

    def list_offset(self, topic: str, partition: int, spec: int) -> int:
        # Prints `topic [partition] offset N`.
        return int(self._run("-Q", "-t", f"{topic}:{partition}:{spec}").split()[-1])
