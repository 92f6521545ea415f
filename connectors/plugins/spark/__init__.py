"""Topics as tables of files, and queries over topics, by Spark."""

from connectors.plugins.spark.sink import SparkSink
from connectors.plugins.spark.sql import SparkSql

CONNECTORS = (SparkSink, SparkSql)
