"""Connectors that exist in tests only: a source with a password, and a sink that takes all."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from connectors.sdk.configs import Definition, Importance, Key, Kind, Value
from connectors.sdk.connector import (
    Parsed,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
)
from connectors.sdk.errors import ConfigError
from connectors.sdk.records import Place


def key(name: str, kind: Kind = Kind.STRING, **more: Any) -> Key:
    return Key(name=name, kind=kind, importance=Importance.HIGH, doc="", **more)


class Lines(SourceConnector):
    name = "samsa.test.lines"
    aliases = ("org.example.LinesConnector",)
    title = "Lines"
    summary = "Lines of a file."
    refused: ClassVar[Mapping[str, str]] = {"old.key": "nobody needs it"}

    @classmethod
    def definition(cls) -> Definition:
        return Definition(
            (
                key("file", default=None),
                key("topic"),
                key("batch.size", Kind.INT, default=2000),
                key("connection.url", default=None),
                key("connection.password", Kind.PASSWORD, default=None),
            )
        )

    def validate(self, parsed: Parsed) -> Sequence[Value]:
        if parsed["file"] == "broken":
            raise ConfigError("the folder is not there")
        if parsed["file"] == "bug":
            raise RuntimeError("s3cret")
        wrong = ("there is no such file",) if parsed["file"] == "gone" else ()
        return (Value(name="file", value=parsed["file"], errors=wrong),)

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        return [{}]

    def alter_offsets(self, parsed: Parsed, offsets: Mapping[str, Place | None]) -> None:
        for place, offset in offsets.items():
            if offset is not None and "position" not in offset:
                raise ConfigError(f"{place} needs a position")

    def task(self) -> SourceTask:
        raise NotImplementedError


class Blackhole(SinkConnector):
    name = "samsa.test.blackhole"
    title = "Blackhole"
    summary = "Takes all."

    @classmethod
    def definition(cls) -> Definition:
        return Definition()

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        return [{}]

    def task(self) -> SinkTask:
        raise NotImplementedError


ALL = (Lines, Blackhole)
