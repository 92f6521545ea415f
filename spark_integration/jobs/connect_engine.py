"""A session on a server of Spark Connect, which other processes share."""

from collections.abc import Mapping
from contextlib import suppress

from pyspark.sql import SparkSession

from spark_integration.jobs.targets import Target


class ConnectEngine:
    """One session over the network; it can be lost and found again, so it has no process."""

    def __init__(self, target: Target, settings: Mapping[str, str]) -> None:
        token = f";token={target.token}" if target.token else ""
        self.spark = SparkSession.builder.remote(f"{target.url}{token}").create()
        for name, value in settings.items():
            self.spark.conf.set(name, value)

    def is_alive(self) -> bool:
        return not self.spark.is_stopped

    def exit_code(self, wait_s: float) -> int | None:
        """Return None: the server's process is not ours."""
        del wait_s
        return None

    def cancel(self) -> None:
        self.spark.interruptAll()

    def close(self) -> None:
        # The server may be gone.
        with suppress(Exception):
            self.spark.stop()
