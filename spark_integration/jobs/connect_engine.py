"""A session on a server of Spark Connect, which other processes share.

The server needs nothing of Samsa: the code of `format("samsa")` comes with the session, which the
server forgets with all else that a session has brought.
"""

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pyspark.sql import SparkSession
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.client.retries import DefaultPolicy

from spark_integration.jobs.chronicle import EngineFacts
from spark_integration.jobs.package import OWN_ZIP, own_zip
from spark_integration.jobs.settings import merged, session_settings
from spark_integration.jobs.targets import Target

# Some four seconds in all, for a connection that broke. Spark's own ten minutes would hold all
# connectors of the worker; a server that is away for longer is asked again by them.
TRIES: Final = 4
FIRST_WAIT_MS: Final = 250
MOST_WAIT_MS: Final = 2000
# A server that is frozen keeps its connection. Spark's own 10 minutes for each question would hold
# all connectors of the worker, too; a server that has just started takes seconds for its first.
ANSWER_S: Final = 60.0
# One that works says at once that it does; another session is made for less.
ALIVE_S: Final = 5.0
# What is ended may have ended already, and its server as well.
INTERRUPT_S: Final = 5.0
RELEASE_S: Final = 2.0


class ConnectEngine:
    """One session over the network."""

    def __init__(self, target: Target, settings: Mapping[str, str]) -> None:
        # A token may have any characters, and an address divides its settings by some of them.
        token = f";token={quote(target.token, safe='')}" if target.token else ""
        # Made without a request: the first one is that below.
        self.spark = SparkSession.builder.remote(f"{target.url}{token}").create()
        limit(
            self.spark.client,
            config=ANSWER_S,
            interrupt=INTERRUPT_S,
            release_session=RELEASE_S,
        )
        # If the server is away, the caller asks again.
        self.spark.client.set_retry_policies([])
        try:
            for name, value in merged(session_settings(), settings).items():
                self.spark.conf.set(name, value)
            self._send_code()
        except BaseException:
            # The server has a session of it, or will have.
            self.close()
            raise
        self.spark.client.set_retry_policies([patience()])

    def is_alive(self) -> bool:
        """Ask the server: it forgets sessions that nobody used for an hour, and all by its end."""
        # Once: another session is made in less time than it takes to ask again.
        self.spark.client.set_retry_policies([])
        limit(self.spark.client, config=ALIVE_S)
        try:
            self.spark.conf.get("spark.sql.session.timeZone")
        # It has a class for each thing that a server may say, and for those that gRPC says.
        except Exception:  # noqa: BLE001
            return False
        finally:
            limit(self.spark.client, config=ANSWER_S)
            self.spark.client.set_retry_policies([patience()])
        return True

    def exit_code(self, wait_s: float) -> int | None:
        """Return None: the server's process is not ours."""
        del wait_s
        return None

    def has_ended(self) -> bool:
        """Tell whether this process has ended it; the server is not asked."""
        return bool(self.spark.is_stopped)

    def cancel(self) -> None:
        self.spark.interruptAll()

    def facts(self) -> EngineFacts:
        return EngineFacts(version=self.spark.version)

    def cores(self) -> int | None:
        """Return None: they are the server's."""
        return None

    def how_it_ended(self) -> str:
        return "the session on the Connect server has ended"

    def close(self) -> None:
        # The server may be gone, and is not waited for.
        with suppress(Exception):
            self.spark.client.set_retry_policies([])
        with suppress(Exception):
            self.spark.stop()

    def _send_code(self) -> None:
        with tempfile.TemporaryDirectory(prefix="samsa-") as folder:
            code = Path(folder) / OWN_ZIP
            code.write_bytes(own_zip())
            self.spark.addArtifacts(os.fspath(code), pyfile=True)


def limit(client: SparkConnectClient, **seconds: float) -> None:
    """Set how long a server may take for an answer, by the kind of question."""
    # Its session passes it no deadlines, and releases before 4.3 have none.
    if (before := getattr(client, "_rpc_deadlines", None)) is not None:
        client._rpc_deadlines = replace(before, **seconds)  # noqa: SLF001


def patience() -> DefaultPolicy:
    return DefaultPolicy(
        max_retries=TRIES,
        initial_backoff=FIRST_WAIT_MS,
        max_backoff=MOST_WAIT_MS,
        backoff_multiplier=2,
    )
