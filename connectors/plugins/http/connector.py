"""A sink that sends records to a web server, in order, at least once each."""

from collections.abc import Sequence

from connectors.plugins.http import keys
from connectors.plugins.http.task import HttpTask
from connectors.sdk.configs import Definition, Value
from connectors.sdk.connector import Parsed, SinkConnector, SinkTask


class HttpSink(SinkConnector):
    name = "samsa.http.sink"
    aliases = (
        "io.aiven.kafka.connect.http.HttpSinkConnector",
        "io.confluent.connect.http.HttpSinkConnector",
    )
    title = "HTTP requests"
    summary = "Sends records to a web server, one by one or in batches."
    refused = keys.REFUSED

    @classmethod
    def definition(cls) -> Definition:
        return keys.DEFINITION

    def validate(self, parsed: Parsed) -> Sequence[Value]:
        return [
            Value(name=name, value=parsed.get(name), errors=(text,))
            for name, text in keys.problems(parsed)
        ]

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        del parsed
        return [{} for _ in range(max_tasks)]

    def task(self) -> SinkTask:
        return HttpTask()
