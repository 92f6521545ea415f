"""`./samsa spark examples` and `./samsa spark example NAME`: jobs to try with one command.

Creates the topics of an example and writes generated records to one of them; the job itself is in
`spark_integration/examples`, in a form to copy.
"""

import fcntl
import json
import os
import shlex
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Final, Self

import click
from click.core import ParameterSource

from brokers.supervisor.home import Home
from cli.bootstrap import MAX_SETTINGS_BYTES, reaches_cluster
from cli.environment import ROOT
from cli.output import say
from gateway.kafka import kept_topics
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import failure
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, Position, PositionKind
from gateway.kafka.values import NewTopic as ClusterTopic
from spark_integration.examples.catalog import EXAMPLES, Example, Job, NewTopic, Place
from spark_integration.examples.made_up import MadeUp, spread
from spark_integration.jobs.errors import SparkError
from spark_integration.jobs.session import close_session, session

# The number of Spark tasks that read a topic.
PARTITIONS: Final = 3
# The first records of an example: enough for folders of two hours, but fast to write and read.
FIRST_RECORDS: Final = 600
FIRST_SPAN: Final = timedelta(minutes=90)
# And records per second while it runs.
RECORDS_PER_S: Final = 20
# The longest delay to notice the end of a query, a batch or Ctrl-C.
LOOK_SECONDS: Final = 1.0
# A file beside a checkpoint, with its topic and cluster.
SOURCE_SUFFIX: Final = ".source.json"
# Limits the text of a Spark error, which may be a page of Java.
MAX_ERROR_CHARACTERS: Final = 400


@click.command("examples", epilog="Example: ./samsa spark examples")
def list_examples() -> None:
    """List the example jobs."""
    width = max(map(len, EXAMPLES))
    for example in EXAMPLES.values():
        click.echo(f"{example.name:{width}}  {example.summary}; see {example.page}")
    click.echo(
        "\nTo run one until Ctrl-C: ./samsa spark example NAME (with --once, until it has read all)"
    )


@click.command("example", epilog="Example: ./samsa spark example clickstream --once")
@click.argument("name", type=click.Choice(list(EXAMPLES)), metavar="NAME")
@click.option(
    "--once", "is_once", is_flag=True, help="Stop when all records written so far have been read."
)
@click.option(
    "--every",
    "every_s",
    type=click.IntRange(min=1, max=3600),
    default=5,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between batches, without --once.",
)
@click.option(
    "--topic",
    default="",
    metavar="NAME",
    help="Read this topic, and generate no records for it.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the output files. Default: examples/NAME in the home.",
)
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for Spark's checkpoint. Default: checkpoint in the output folder.",
)
@reaches_cluster
def run_example(
    *,
    connection: Connection,
    name: str,
    is_once: bool,
    every_s: int,
    topic: str,
    out: Path | None,
    checkpoint: Path | None,
) -> None:
    """Run the job NAME of `./samsa spark examples`: until Ctrl-C, or with --once."""
    # `reaches_cluster` does not pass it on.
    home: Path = click.get_current_context().params["home"]
    found = EXAMPLES[name]
    folder = (out or home / "examples" / name).absolute()
    place = Place(
        kafka={
            "kafka.bootstrap.servers": connection.bootstrap,
            **{f"kafka.{key}": value for key, value in connection.properties.items()},
        },
        topic=topic or found.topic or metrics_topic_of(home),
        folder=str(folder),
        checkpoint=str((checkpoint or folder / "checkpoint").absolute()),
        every_s=None if is_once else every_s,
    )
    with held(folder, place):
        require_pair(place)
        require_source(connection, place)
        try:
            run(home, connection, found, place, is_given=bool(topic))
        except SparkError as error:
            raise click.ClickException(str(error)) from error


def metrics_topic_of(home: Path) -> str:
    """Return the metrics topic of a home; a usage error if it has none."""
    found = kept_topics.metrics_topic_of(Home(home).settings_file)
    if not found:
        raise click.ClickException(
            f"{home} writes no samples to a topic: start it by"
            " ./samsa up --metrics-topic samsa-metrics, or name the topic of another cluster with"
            " --topic and --bootstrap"
        )
    return found


@contextmanager
def held(folder: Path, place: Place) -> Iterator[None]:
    """Prevent a second run: two queries on one checkpoint would corrupt it."""
    lock = Path(f"{place.checkpoint}.lock")
    try:
        for path in (folder, lock.parent):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise click.ClickException(
            f"cannot write to {error.filename}: {error.strerror}; name another folder with --out"
        ) from error
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise click.ClickException(
            f"another run of this example uses {place.checkpoint}: end it with Ctrl-C,"
            " or name another folder with --out"
        ) from None
    else:
        yield
    finally:
        os.close(number)


def require_pair(place: Place) -> None:
    """Refuse files without their checkpoint: Spark would take new batches for those in the files.

    Its sink silently skips every batch whose number is in the folder already.
    """
    if not Path(place.checkpoint).exists():
        for metadata in Path(place.folder).glob("*/_spark_metadata"):
            raise click.ClickException(
                f"{metadata.parent} has files of another checkpoint than {place.checkpoint}, and"
                f" Spark would write nothing there: delete {metadata.parent}, or name another"
                " folder with --out"
            )


def require_source(connection: Connection, place: Place) -> None:
    """Refuse a checkpoint of another topic or cluster: its offsets do not apply."""
    source = {"cluster": Admin(connection).cluster().id, "topic": place.topic}
    file = Path(f"{place.checkpoint}{SOURCE_SUFFIX}")
    try:
        with file.open("rb") as opened:
            found = json.loads(opened.read(MAX_SETTINGS_BYTES))
    except FileNotFoundError:
        found = source
        file.write_text(json.dumps(source), encoding="utf-8")
    except ValueError:
        found = None
    if found != source:
        shown = f"topic {found['topic']}" if isinstance(found, dict) else "another source"
        raise click.ClickException(
            f"{place.checkpoint} is the checkpoint of {shown}, on cluster "
            f"{found.get('cluster') if isinstance(found, dict) else 'unknown'}, not of topic "
            f"{place.topic} of cluster {source['cluster']}: name another folder with --out"
        )


# --- topics and what is made up ----------------------------------------------------------------


def prepare(connection: Connection, found: Example, place: Place, *, is_given: bool) -> None:
    """Create missing topics, and write the first records of empty ones."""
    admin = Admin(connection)
    existing = {topic.name for topic in admin.topics()}
    wanted = list(found.topics(place.topic))
    if found.make_up is not None and not is_given:
        wanted.append(NewTopic(name=place.topic))
    elif place.topic not in existing:
        words = (
            ""
            if is_given
            else ("it does not exist yet: the collector creates it within 20 s of its start")
        )
        raise failure("UNKNOWN_TOPIC_OR_PARTITION", f"topic {place.topic}", words)
    missing = [topic for topic in wanted if topic.name not in existing]
    if missing:
        admin.create(
            [
                ClusterTopic(name=topic.name, partitions=PARTITIONS, configs=topic.configs)
                for topic in missing
            ]
        )
        say(f"Created the topics {', '.join(topic.name for topic in missing)}.")
    for topic in wanted:
        # An interrupted run may have created it and written nothing.
        if topic.seed is not None and is_empty(admin, topic.name):
            write(TopicWriter(connection, topic.name), topic.seed(datetime.now(UTC)))


def is_empty(admin: Admin, topic: str) -> bool:
    partitions = [partition.index for partition in admin.find([topic])[topic].partitions]
    ends = admin.offsets(topic, partitions, Position(kind=PositionKind.END))
    return not any(ends.values())


def write(producer: TopicWriter, records: Iterator[MadeUp]) -> int:
    """Write records and wait for acknowledgement; return their number."""
    count = 0
    for record in records:
        producer.send(NewRecord(key=record.key, value=record.value, timestamp_ms=record.at_ms))
        count += 1
    producer.flush()
    return count


class Feed:
    """Generated records for one topic."""

    def __init__(self, connection: Connection, found: Example) -> None:
        assert found.make_up is not None, "only what is made up is fed"
        self._make_up = found.make_up
        self._chance = Random()  # noqa: S311 - nothing here is secret
        self._producer = TopicWriter(connection, found.topic)
        self._written = datetime.now(UTC)

    def begin(self) -> int:
        """Write the first records, with times in the last hour and a half."""
        return self._write(FIRST_RECORDS, FIRST_SPAN)

    def go_on(self) -> None:
        """Write the records since the last call, but at most those of a minute."""
        passed = min(datetime.now(UTC) - self._written, timedelta(minutes=1))
        self._write(int(passed.total_seconds() * RECORDS_PER_S), passed)

    def _write(self, count: int, span: timedelta) -> int:
        self._written = datetime.now(UTC)
        moments = spread(self._written, count=count, over=span)
        return write(self._producer, self._make_up(self._chance, moments))


# --- the run -----------------------------------------------------------------------------------


class Interrupts:
    """Handles Ctrl-C: the first one stops the run in order, the second one ends the process."""

    def __init__(self) -> None:
        self._has_come = False

    def has_come(self) -> bool:
        return self._has_come

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._has_come = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


def run(
    home: Path, connection: Connection, found: Example, place: Place, *, is_given: bool
) -> None:
    # Spark's Python workers import `format("samsa")` from the folder in which they start.
    os.chdir(ROOT)
    say("Starting Spark, which takes some seconds.")
    try:
        spark = session(home)
        register(spark)
        # After the session: without Spark, nothing is created.
        prepare(connection, found, place, is_given=is_given)
        feed = None if is_given or found.make_up is None else Feed(connection, found)
        if feed is not None:
            say(f"{feed.begin()} generated records written to {place.topic}.")
        job = found.load()
        queries = job.start(spark, place)
        end = "Ctrl-C ends it" if place.every_s is not None else "it ends with the last record"
        say(f"Reading {place.topic}; {end}.")
        with Interrupts() as interrupts:
            try:
                follow(queries, job, interrupts, feed if place.every_s is not None else None)
            finally:
                for query in queries:
                    query.stop()
        finish(found, place, job.look(spark, place))
    finally:
        close_session()


def register(spark: Any) -> None:  # noqa: ANN401 (an extra without types)
    """Register `format("samsa")` with a session, like a program in the checkout."""
    from spark_integration.datasource.source import SamsaDataSource  # noqa: PLC0415 (an extra)

    spark.dataSource.register(SamsaDataSource)


def follow(queries: Sequence[Any], job: Job, interrupts: Interrupts, feed: Feed | None) -> None:
    """Report batches until all queries have ended, or Ctrl-C."""
    told = [""] * len(queries)
    while not interrupts.has_come():
        try:
            has_ended = [query.awaitTermination(LOOK_SECONDS / len(queries)) for query in queries]
        except Exception as error:  # of any kind that a query can end with
            if interrupts.has_come():
                # The interrupt came while it was being read.
                return
            words = " ".join(str(error).split())[:MAX_ERROR_CHARACTERS]
            raise click.ClickException(
                f"the query has failed: {words}\nNext: read logs/spark.log of the home; the same "
                "command continues after the last batch that was written"
            ) from error
        for number, query in enumerate(queries):
            told[number] = tell_new(query, job, since=told[number])
        if all(has_ended):
            return
        if feed is not None:
            feed.go_on()


def tell_new(query: Any, job: Job, *, since: str) -> str:  # noqa: ANN401 (an extra without types)
    """Print reports of batches after a time; return the time of the newest."""
    for progress in query.recentProgress:
        # Spark's times all have the same form; a waiting batch has a number, but no progress yet.
        if progress["timestamp"] > since:
            since = progress["timestamp"]
            if sentence := job.tell(progress):
                click.echo(f"  {since}  {sentence}")
    return since


def finish(found: Example, place: Place, lines: Sequence[str]) -> None:
    say("The example has ended; the same command continues from here.")
    for line in lines:
        click.echo(f"  {line}")
    say("Next:")
    for line in found.next_steps(place):
        click.echo(f"  {line}{cluster_options() if line.startswith('./samsa ') else ''}")
    click.echo(f"  read {found.page}, and copy {found.source}")
    # Only files of this run: the user's folder may contain others.
    made = [Path(place.checkpoint), Path(f"{place.checkpoint}{SOURCE_SUFFIX}")]
    made += [Path(place.folder, name) for name in found.folders]
    paths = shlex.join(str(path) for path in made if path.exists())
    click.echo(f"  rm -r {paths}   # the next run begins at the topic's beginning")


def cluster_options() -> str:
    """Return the options that name the cluster, for the commands to run next."""
    context = click.get_current_context()
    words = [
        word
        for name in ("bootstrap", "home")
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        for word in (f"--{name}", str(context.params[name]))
    ]
    return f" {shlex.join(words)}" if words else ""
