"""Manages a session on a Spark Connect server, which other processes share.

Samsa need not be installed on the server: the session brings the code of `format("samsa")`, and
the server forgets it with the session.
"""

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

# Read when gRPC is imported, below: its handlers for forks may block this process for a minute when
# it starts another program.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

from pyspark.sql import SparkSession
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.client.retries import DefaultPolicy

from spark_integration.jobs.chronicle import EngineFacts
from spark_integration.jobs.package import OWN_ZIP, own_zip
from spark_integration.jobs.settings import merged, session_settings
from spark_integration.jobs.targets import Target

# About four seconds in all, for a broken connection. Spark's default of ten minutes would block all
# connectors of the worker; they retry later if the server is down for longer.
TRIES: Final = 4
FIRST_WAIT_MS: Final = 250
MOST_WAIT_MS: Final = 2000
# A frozen server keeps its connection. Spark's default of 10 minutes per request would block all
# connectors of the worker, too; a new server takes seconds for its first answer.
ANSWER_S: Final = 60.0
# A healthy server answers at once; to create another session takes less time.
ALIVE_S: Final = 5.0
# The job or the session may have ended already, and its server as well.
INTERRUPT_S: Final = 5.0
RELEASE_S: Final = 2.0


class ConnectEngine:
    """A session over the network."""

    def __init__(self, target: Target, settings: Mapping[str, str]) -> None:
        # A token may have any characters, some of which separate the settings of an address.
        token = f";token={quote(target.token, safe='')}" if target.token else ""
        # Creates no session yet: the first request is below.
        self.spark = SparkSession.builder.remote(f"{target.url}{token}").create()
        limit(
            self.spark.client,
            config=ANSWER_S,
            interrupt=INTERRUPT_S,
            release_session=RELEASE_S,
        )
        # If the server is down, the caller retries.
        self.spark.client.set_retry_policies([])
        with ExitStack() as failing:
            # The server has a session of this client, or will have.
            failing.callback(self.close)
            for name, value in merged(session_settings(), settings).items():
                self.spark.conf.set(name, value)
            self._send_code()
            failing.pop_all()
        self.spark.client.set_retry_policies([patience()])

    def is_alive(self) -> bool:
        """Ask the server, which forgets a session when it ends, or after an hour without use."""
        # Without retries: creating another session takes less time.
        self.spark.client.set_retry_policies([])
        limit(self.spark.client, config=ALIVE_S)
        try:
            self.spark.conf.get("spark.sql.session.timeZone")
        # There is a class for each error of a server, and others for gRPC's errors.
        except Exception:  # noqa: BLE001
            return False
        finally:
            limit(self.spark.client, config=ANSWER_S)
            self.spark.client.set_retry_policies([patience()])
        return True

    def exit_code(self, wait_s: float) -> int | None:
        """Return None: the server's process is not a child of this one."""
        del wait_s
        return None

    def has_ended(self) -> bool:
        """Return whether this process has ended the session; does not ask the server."""
        return bool(self.spark.is_stopped)

    def cancel(self) -> None:
        self.spark.interruptAll()

    def facts(self) -> EngineFacts:
        return EngineFacts(version=self.spark.version)

    def cores(self) -> int | None:
        """Return None: the cores are the server's."""
        return None

    def how_it_ended(self) -> str:
        return "the session on the Connect server has ended"

    def close(self) -> None:
        # The server may be gone; do not wait for it.
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
    """Set the timeouts of the client, by kind of request."""
    # The session passes no deadlines to its client, and releases before 4.3 have none.
    if (before := getattr(client, "_rpc_deadlines", None)) is not None:
        client._rpc_deadlines = replace(before, **seconds)  # noqa: SLF001


def patience() -> DefaultPolicy:
    return DefaultPolicy(
        max_retries=TRIES,
        initial_backoff=FIRST_WAIT_MS,
        max_backoff=MOST_WAIT_MS,
        backoff_multiplier=2,
    )
