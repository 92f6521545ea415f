"""Spark SQL: one query over topics, whose rows become records of a topic or a table."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from connectors.plugins.spark import sql_keys
from connectors.plugins.spark.sink import SparkSinkTask
from connectors.plugins.spark.sql_rows import SqlRows
from connectors.plugins.spark.topic_task import TopicTask
from connectors.sdk.configs import Definition, Value
from connectors.sdk.connector import JobConnector, JobContext, JobTask, Parsed


class SparkSql(JobConnector):
    name = "samsa.spark.sql"
    title = "Spark SQL"
    summary = (
        "Filter, change and enrich the records of topics by a query, and write them to a topic or"
        " a table."
    )
    pool = "spark"
    extra = "spark"
    modules: ClassVar[tuple[str, ...]] = ("pyspark", "pyarrow", "deltalake", "pyiceberg")
    refused: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"topics.regex": "a pattern may lead to topics that no view has columns for: name topics"}
    )

    @classmethod
    def definition(cls) -> Definition:
        return sql_keys.definition()

    def validate(self, parsed: Parsed) -> Sequence[Value]:
        return [
            Value(name=name, value=parsed.get(name), errors=(wrong,))
            for name, wrong in sql_keys.problems(parsed)
        ]

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        del parsed, max_tasks
        # Spark spreads a batch over its cores itself.
        return [{}]

    def task(self) -> JobTask:
        return SparkSqlTask()


class SparkSqlTask(JobTask):
    """Delegates to the task of the one target that the config names."""

    def start(self, context: JobContext, parsed: Parsed) -> None:
        self._task = TopicTask() if parsed[sql_keys.TOPIC] else SparkSinkTask(SqlRows)
        self._task.start(context, parsed)

    def run(self) -> bool:
        return self._task.run()

    def stop(self) -> None:
        self._task.stop()
