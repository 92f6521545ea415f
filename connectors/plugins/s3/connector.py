"""A sink that writes each record exactly once into a file of a bucket, despite crashes."""

from collections.abc import Sequence

from connectors.plugins.s3 import keys
from connectors.plugins.s3.task import S3Task
from connectors.sdk import columns
from connectors.sdk.configs import Definition, Value
from connectors.sdk.connector import Parsed, SinkConnector, SinkTask


class S3Sink(SinkConnector):
    name = "samsa.s3.sink"
    aliases = ("io.confluent.connect.s3.S3SinkConnector",)
    title = "S3 files"
    summary = "Writes records into files of a bucket, as lines of JSON or as Parquet."
    is_exactly_once = True
    refused = keys.REFUSED

    @classmethod
    def definition(cls) -> Definition:
        return keys.DEFINITION

    def validate(self, parsed: Parsed) -> Sequence[Value]:
        wrong = keys.problems(parsed)
        if (
            keys.FORMATS.get(parsed.get(keys.FORMAT) or "") == keys.PARQUET
            and not columns.is_here()
        ):
            missing = f"Parquet needs pyarrow, which is not installed: {columns.INSTALL}"
            wrong.append((keys.FORMAT, missing))
        return [Value(name=name, value=parsed.get(name), errors=(text,)) for name, text in wrong]

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        del parsed
        return [{} for _ in range(max_tasks)]

    def task(self) -> SinkTask:
        return S3Task()
