"""kafkajs' admin client as a door of the admin table: a program that is told one call to a line."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.interop.clients.admin import SECONDS, Described, Refused
from tests.suite.extras import KAFKAJS

PROGRAM = Path(__file__).with_name("kafkajs") / "admin.js"


class KafkaJsDoor:
    def __init__(self, bootstrap: str) -> None:
        self._program = subprocess.Popen(
            ["node", str(PROGRAM), bootstrap],
            env={**os.environ, "NODE_PATH": KAFKAJS.search_path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def close(self) -> None:
        # The end of its input is the end of the program.
        self._program.communicate(timeout=SECONDS)

    def _call(self, call: str, **arguments: Any) -> Any:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps({"call": call, "arguments": arguments}) + "\n")
        self._program.stdin.flush()
        told = json.loads(self._program.stdout.readline())
        if "code" in told:
            raise Refused(told["code"], told["message"])
        return told["value"]

    def create_topic(self, topic: str, **arguments: Any) -> None:
        self._call("create_topic", topic=topic, **arguments)

    def delete_topic(self, topic: str) -> None:
        self._call("delete_topic", topic=topic)

    def has_topic(self, topic: str) -> bool:
        return bool(self._call("has_topic", topic=topic))

    def describe_topic(self, topic: str) -> Described:
        return [tuple(each) for each in self._call("describe_topic", topic=topic)]

    def create_partitions(self, topic: str, total: int) -> None:
        self._call("create_partitions", topic=topic, total=total)

    def topic_configs(self, topic: str) -> dict[str, str]:
        return dict(self._call("topic_configs", topic=topic))

    def broker_config(self, key: str) -> str:
        return str(self._call("broker_config", key=key))

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        self._call("replace_configs", topic=topic, configs=dict(configs))

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        return int(self._call("delete_records", topic=topic, partition=partition, before=before))

    def cluster(self) -> tuple[int, bool, bool]:
        nodes, has_controller, has_id = self._call("cluster")
        return nodes, has_controller, has_id

    def list_offset(self, topic: str, partition: int, spec: int) -> int:
        return int(self._call("list_offset", topic=topic, partition=partition, spec=spec))

    def acls(self) -> int:
        return int(self._call("acls"))

    def create_acl(self, topic: str) -> None:
        self._call("create_acl", topic=topic)

    def delete_acls(self, topic: str) -> None:
        self._call("delete_acls", topic=topic)

    def reassignments(self) -> list[str]:
        return sorted(self._call("reassignments"))
