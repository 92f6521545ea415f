"""Defines Spark's settings for our sessions, each with its reason. Pure."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from spark_integration.jobs.errors import SparkRefused
from spark_integration.jobs.folders import SessionFolder
from spark_integration.jobs.targets import Kind, Target

# The pattern of Spark for settings to hide in its logs.
SECRET: Final = re.compile(r"(?i)secret|password|token|access[._]?key")
# Replaces Spark's own default, 1g.
MEMORY_VARIABLE: Final = "SAMSA_SPARK_MEMORY"
MEMORY: Final = re.compile(r"[1-9][0-9]{0,6}[mg]")
LOOPBACK: Final = "127.0.0.1"
UI_VARIABLE: Final = "SAMSA_SPARK_UI"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# Four files of 16 MB are kept: a broken query writes a trace a second.
LOGGING: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = LOG_FILE
appender.file.filePattern = LOG_FILE.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSSX}{UTC} %p %c{1}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 16MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def logging_of(log: Path) -> str:
    """Return the configuration of Spark's log for Log4j."""
    return LOGGING.replace("LOG_FILE", str(log))


def session_settings() -> dict[str, str]:
    """Return the settings of a session, wherever Spark runs."""
    return {
        # State that does not fit into memory goes to disk, and a batch writes only changes.
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Display times of records as written, in any time zone of the machine.
        "spark.sql.session.timeZone": "UTC",
        # The form of times in files that all programs but Spark use.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }


def wants_ui(environment: Mapping[str, str]) -> bool:
    """Return whether to serve Spark's own pages."""
    return environment.get(UI_VARIABLE, "").strip().lower() in {"true", "1", "yes", "on"}


def driver_settings(
    target: Target,
    folder: SessionFolder,
    log_file: Path,
    *,
    cores: int,
    has_ui: bool = False,
    java_options: Sequence[str] = (),
) -> dict[str, str]:
    """Return the additional settings of a driver in our JVM."""
    settings = {
        # The default of 200 creates as many state stores, which slows each batch on a small host.
        "spark.sql.shuffle.partitions": str(cores),
        "spark.master": target.url,
        "spark.app.name": "samsa",
        # The port has no authentication; the console shows the main facts.
        "spark.ui.enabled": str(has_ui).lower(),
        # Users who may see the pages may not be allowed to end jobs of others.
        "spark.ui.killEnabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder.temporary),
        "spark.sql.warehouse.dir": folder.warehouse.as_uri(),
        # Tables by path or in the user's catalogue, not in a database in the current folder.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.driver.extraJavaOptions": " ".join(
            [
                f"-Djava.io.tmpdir={folder.temporary}",
                f"-Dderby.system.home={folder.path}",
                f"-Dlog4j2.configurationFile={log_file.as_uri()}",
                *java_options,
            ]
        ),
    }
    if target.is_loopback:
        settings |= {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}
    if target.kind is Kind.LOCAL:
        # Other users of the machine can use loopback too; Spark generates the secret itself.
        settings["spark.authenticate"] = "true"
    if target.token:
        settings |= {
            "spark.authenticate": "true",
            "spark.authenticate.secret": target.token,
            "spark.network.crypto.enabled": "true",
        }
    return settings


def memory_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the memory of our Java process, if the user sets it."""
    text = environment.get(MEMORY_VARIABLE, "")
    if not text:
        return {}
    if not MEMORY.fullmatch(text):
        raise SparkRefused(f"{MEMORY_VARIABLE} is {text!r}: give it as in 4g or 2048m")
    return {"spark.driver.memory": text}


def merged(*tables: Mapping[str, str]) -> dict[str, str]:
    """Merge tables; later ones take precedence."""
    return {name: value for table in tables for name, value in table.items()}


def is_secret(name: str) -> bool:
    return SECRET.search(name) is not None
