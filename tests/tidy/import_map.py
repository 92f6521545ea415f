"""Who may import whom, as data: the rows of docs/architecture.md, "Who may import whom".

Rooms that do not exist yet have their row already, so that their first module is checked.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from tests.tidy.project import Source, is_within

PURE = "brokers.protocol brokers.cluster brokers.clock "
CONTROLPLANE = (
    "brokers.cluster brokers.security brokers.protocol.errors brokers.protocol.frames "
    "brokers.clock brokers.config "
)
CONTROLPLANE_DOORS = "brokers.controlplane.services brokers.controlplane.selectors "
WATCHED = "brokers.inspection brokers.cluster.image "
WATCHERS_DOORS = "brokers.controlplane.selectors brokers.controlplane.logs "
CONNECTORS_DOORS = (
    "connectors.services connectors.selectors connectors.drafts connectors.changes "
    "connectors.refusals "
)
DEAD_LETTERS_DOORS = (
    "connectors.dead_letters connectors.redrives connectors.redrive_plans "
    "connectors.runtime.letters "
)
READ_OF_BROKERS = (
    "brokers.controlplane.selectors brokers.cluster.image brokers.protocol.errors "
    "brokers.protocol.schema brokers.coordination.groups brokers.inspection brokers.key_files "
    "brokers.search.predicate brokers.protocol.records.reader "
)
OF_COMMANDS = (
    "gateway.kafka brokers.supervisor brokers.inspection brokers.release brokers.quantities "
    "gateway.moments cli.connect_client cli.spark_examples cli.verdicts "
    "spark_integration.jobs.class_archive spark_integration.jobs.errors "
    "spark_integration.jobs.java spark_integration.jobs.package spark_integration.jobs.programs"
)
SHARED_BY_COMMANDS = (
    "cli.home cli.output cli.bootstrap cli.environment cli.installed cli.installer "
)
SHARD = "brokers.coordination.shard "

# What marks a room as concurrent, on the network, in the web, and so on: kind -> modules, of which
# a room imports what its row grants. Where only part of a package does I/O, the part is named, so
# that `urllib.parse` and `http.HTTPStatus` are free.
GUARDED: dict[str, tuple[str, ...]] = {
    "concurrency": ("asyncio", "threading", "_thread", "concurrent"),
    "processes": ("subprocess", "multiprocessing", "signal", "fcntl", "pty"),
    "network": (
        *("socket", "socketserver", "select", "selectors", "ssl", "h11", "xmlrpc"),
        *("http.client", "http.server", "urllib.request", "ftplib", "smtplib", "poplib", "imaplib"),
    ),
    # The rooms of Django reach the database through its ORM, the others not at all.
    "databases": ("sqlite3", "psycopg", "psycopg2", "redis", "valkey", "dbm"),
    "web": ("django", "rest_framework", "channels", "celery"),
    "clients": ("confluent_kafka", "pyspark", "pyarrow"),
    "terminal": ("click", "rich"),
    "expressions": ("re2",),
}
ANYTHING = "anything"

# room: (what it may import from us, guarded modules or kinds of them it may import). A room is a
# dotted prefix, and the longest one that fits a module is its room.
MAY_IMPORT: dict[str, tuple[str, str]] = {
    "brokers.clock": ("", ""),
    "brokers.config": ("", ""),
    "brokers.exit_codes": ("", ""),
    "brokers.disk_room": ("", ""),
    "brokers.key_files": ("", ""),
    "brokers.quantities": ("", ""),
    "brokers.release": ("", ""),
    # Each process of a home beats: from its event loop, or from a thread where it has none.
    "brokers.beats": ("", "asyncio threading"),
    # The two files by which an agent shows every other process of its home how it is.
    "brokers.agent_status": ("", ""),
    "brokers.protocol": ("", ""),
    # Long work divided into slices, between which an event loop serves others.
    "brokers.slices": ("brokers.clock", "asyncio"),
    # The only room that opens or serves an HTTP connection.
    "brokers.http": ("brokers.clock brokers.slices", "asyncio socket ssl h11"),
    # The lock that keeps a second broker out of a log dir.
    "brokers.storage": ("brokers.protocol brokers.clock brokers.disk_room", "fcntl"),
    "brokers.cluster": ("brokers.protocol.errors brokers.clock brokers.quantities", ""),
    "brokers.security": ("brokers.protocol brokers.cluster", "ssl"),
    "brokers.replication": (
        PURE + "brokers.storage brokers.disk_room brokers.slices",
        "asyncio threading",
    ),
    "brokers.coordination.shard": (PURE, ""),
    "brokers.coordination.groups": (PURE + SHARD, "re2"),
    "brokers.coordination.transactions": (PURE + SHARD, ""),
    "brokers.coordination": (
        PURE
        + SHARD
        + "brokers.coordination.groups brokers.coordination.transactions brokers.replication "
        + "brokers.slices",
        "asyncio",
    ),
    "brokers.search": (PURE + "brokers.storage", ""),
    # The composition root of a broker, brokers.server.daemon, needs no exception: this row is
    # every room of the broker process; the two that it leaves out are Django and the parent.
    "brokers.server": (
        PURE
        + "brokers.config brokers.disk_room brokers.key_files brokers.storage brokers.security "
        + "brokers.replication brokers.beats brokers.exit_codes "
        + "brokers.coordination brokers.inspection brokers.search brokers.http brokers.slices",
        "asyncio socket select ssl signal",
    ),
    # And what its agent tells of itself.
    "brokers.controlplane": (CONTROLPLANE + "brokers.agent_status", "django"),
    # What brokers wait for.
    "brokers.controlplane.store": (CONTROLPLANE + "brokers.controlplane", "django asyncio"),
    # Threads that wait for the database.
    "brokers.controlplane.lanes": (
        CONTROLPLANE + "brokers.controlplane",
        "django asyncio concurrent threading",
    ),
    # Whose errors say whether a write waited behind another one.
    "brokers.controlplane.writes": (CONTROLPLANE + "brokers.controlplane.lanes", ""),
    "brokers.controlplane.feed": (CONTROLPLANE + "brokers.controlplane", "django asyncio"),
    "brokers.controlplane.membership": (CONTROLPLANE + "brokers.controlplane", "asyncio"),
    # The two endless loops of the control plane; one agent holds the lock of its home.
    "brokers.controlplane.agent": (
        # Orders for brokers go to the supervisor of its home.
        CONTROLPLANE
        + "brokers.controlplane brokers.key_files brokers.beats brokers.agent_status "
        + "brokers.supervisor.ends brokers.supervisor.errors brokers.supervisor.holds "
        + "brokers.supervisor.home brokers.release",
        "django asyncio fcntl signal socket select",
    ),
    "brokers.controlplane.management": (
        CONTROLPLANE
        + CONTROLPLANE_DOORS
        + "brokers.controlplane.agent brokers.controlplane.audit "
        + "brokers.controlplane.cluster_secrets",
        "django",
    ),
    "brokers.controlplane.controller": (CONTROLPLANE + "brokers.controlplane", "django asyncio"),
    "brokers.supervisor": (
        # Which configs brokers take, and which names topics may have.
        (
            "brokers.config brokers.clock brokers.disk_room brokers.beats brokers.agent_status "
            "brokers.exit_codes brokers.release brokers.quantities "
            "brokers.cluster.static_configs brokers.cluster.topic_names brokers.http"
        ),
        "asyncio subprocess signal socket select fcntl ssl",
    ),
    "brokers.inspection": ("brokers.http", ""),
    # What every command shares.
    "cli.home": ("", "click"),
    "cli.output": ("", "click"),
    "cli.bootstrap": ("cli.home brokers.supervisor gateway.kafka", "click"),
    "cli.installed": ("", ""),
    "cli.installer": ("", "subprocess selectors"),
    "cli.environment": ("cli.installed cli.installer", "subprocess fcntl"),
    "cli": (
        SHARED_BY_COMMANDS + OF_COMMANDS,
        "click rich subprocess signal selectors fcntl",
    ),
    # Runs jobs in a session of its own process.
    "cli.spark_examples": (
        (
            "cli.bootstrap cli.environment cli.output brokers.supervisor gateway.kafka "
            "spark_integration.examples "
            "spark_integration.jobs spark_integration.datasource.source"
        ),
        "click signal fcntl",
    ),
    # Installs what tests need, before pytest is there.
    "cli.test": (
        "cli cli.environment cli.installer tests.suite.extras",
        "click subprocess",
    ),
    # The collector of a home is asked for what Kafka's protocol does not know.
    "cli.verdicts": (
        (
            "cli.bootstrap brokers.supervisor gateway.kafka console.monitoring.selectors "
            "console.monitoring.tables console.monitoring.verdicts"
        ),
        "click",
    ),
    # Kafka Connect's REST is asked over HTTP.
    "cli.connect_client": ("cli.home brokers.supervisor brokers.http", "click ssl"),
    "gateway.moments": ("brokers.quantities", ""),
    # Its answers come as futures; what the library has no call for, it asks by itself, in the
    # brokers' codec. Topics are read by expressions of strangers, too.
    "gateway.kafka": ("brokers.protocol", "confluent_kafka concurrent socket re2"),
    # Deliveries and records come in threads of the library, and go to an event loop.
    "gateway.kafka.delivery": ("gateway.kafka", "confluent_kafka concurrent asyncio threading"),
    # Topics are looked up in a thread, for an event loop.
    "gateway.kafka.known_topics": ("gateway.kafka", "confluent_kafka concurrent asyncio threading"),
    # Lends clients to threads.
    "gateway.kafka.pool": ("gateway.kafka", "confluent_kafka concurrent asyncio threading"),
    # Searches are asked of the brokers themselves.
    "gateway.kafka.readers": (
        "gateway.kafka brokers.inspection.client brokers.cluster.image",
        "confluent_kafka concurrent asyncio threading",
    ),
    # Who may do what, for every room that people reach by a browser or by HTTP.
    "gateway.access": ("gateway.addresses gateway.access.turns gateway.shared.hints", "django"),
    # Bounds what all threads of a web server do at once.
    "gateway.access.turns": ("", "threading"),
    "gateway.addresses": ("", ""),
    "gateway.log_lines": ("", ""),
    # Views and streams of other rooms are named by settings, URLs and apps, and not imported.
    "gateway": (
        (
            "gateway.kafka gateway.access gateway.addresses gateway.log_lines gateway.rest "
            "gateway.ws gateway.shared brokers.key_files brokers.agent_status"
        ),
        "web asyncio",
    ),
    # Starts the server.
    "gateway.__main__": ("gateway.server", ""),
    # Streams of programs, on the event loop; views of what is answered in one piece.
    "gateway.rest": (
        (
            "gateway.kafka gateway.access gateway.access.turns gateway.shared gateway.addresses "
            "brokers.http"
        ),
        "web asyncio concurrent threading",
    ),
    # What a page asks the workers of a home, by their own sockets.
    "gateway.rest.home_traffic": ("gateway.rest brokers.http", ""),
    "gateway.ws": (
        "gateway.kafka gateway.access gateway.shared gateway.rest gateway.addresses",
        "web asyncio concurrent",
    ),
    # What the workers of the gateway share.
    "gateway.shared": ("", "asyncio"),
    # Hints between processes, as Channels offers them to the code of Django.
    "gateway.shared.layer": ("gateway.shared", "asyncio channels"),
    "gateway.shared.hints": ("gateway.shared", "asyncio threading channels"),
    # The web server's process.
    "gateway.server": ("gateway", "asyncio socket"),
    # The flocks by which writers of a SQLite file take turns; one thread waits for each of them.
    "gateway.sqlite": ("brokers.disk_room", "django fcntl threading"),
    "connectors.sdk": ("", ""),
    # The one way out: which hosts a connector may reach, and one exchange with a web server.
    "connectors.sdk.outgoing": ("connectors.sdk", "concurrent socket ssl"),
    "connectors.sdk.exchanges": (
        "connectors.sdk connectors.sdk.outgoing",
        "http.client socket ssl",
    ),
    # What a plugin connects to is its own business.
    # And the lock on a file that a sink writes.
    "connectors.plugins": ("connectors.sdk", "network databases fcntl"),
    # One batch as a table; files of columns.
    "connectors.sdk.columns": ("connectors.sdk", "pyarrow"),
    "connectors.plugins.s3": ("connectors.sdk", "pyarrow"),
    # Files below the home's own folder; Spark, and tables that it does not know without a JAR; a
    # thread that ends a batch while another waits for it.
    "connectors.plugins.spark": (
        (
            "connectors.sdk connectors.plugins.file spark_integration.jobs "
            "spark_integration.datasource.source"
        ),
        "pyspark py4j pyarrow deltalake pyiceberg sqlalchemy threading",
    ),
    # Expressions of strangers, of plugins as of transforms.
    "connectors.sdk.regexes": ("connectors.sdk", "re2"),
    "connectors.runtime": ("connectors.sdk gateway.kafka", "re2"),
    # Starts the processes of connectors, and gives secrets another key.
    "connectors.management": (
        "connectors connectors.runtime connectors.tasks gateway.log_lines",
        "django celery",
    ),
    # A thread renews the lease of the slice that runs; processes are watched by their pidfds.
    "connectors.tasks": (
        (
            "connectors connectors.runtime connectors.sdk connectors.plugins gateway.kafka "
            "brokers.key_files brokers.beats"
        ),
        "django celery threading select signal socket",
    ),
    "connectors": (
        # Patterns of topics, and the groups of sinks; the file of keys that seals passwords.
        (
            "connectors.runtime connectors.sdk connectors.plugins "
            "gateway.access gateway.kafka brokers.key_files brokers.quantities"
        ),
        "django celery",
    ),
    # Views of programs, as those of the gateway; each asks services and selectors.
    "connectors.rest": (
        "connectors gateway.access gateway.kafka gateway.rest",
        "django rest_framework",
    ),
    "console": (
        CONTROLPLANE_DOORS
        + CONNECTORS_DOORS
        + DEAD_LETTERS_DOORS
        + "brokers.controlplane.audit brokers.controlplane.orders brokers.cluster.image "
        + "brokers.cluster.plans brokers.cluster.origins "
        + "brokers.cluster.proposals brokers.protocol.errors "
        # What a config means, which names a topic may have, and what growth does to keys.
        + "brokers.cluster.topic_configs brokers.cluster.broker_configs "
        + "brokers.cluster.topic_names brokers.cluster.config_values "
        + "brokers.cluster.decisions brokers.cluster.effects brokers.cluster.implications "
        + "gateway.kafka gateway.access gateway.addresses brokers.inspection brokers.disk_room "
        + "gateway.moments brokers.quantities "
        # What workers say of themselves, and of their tasks.
        + "connectors.worker_reports connectors.runtime.condition "
        # What workers count for callers.
        + "gateway.rest.home_traffic gateway.rest.traffic "
        # What the web server asks of an application.
        + "gateway.health "
        + "console.preferences console.spreadsheets "
        + "console.monitoring.selectors console.monitoring.tables console.monitoring.verdicts "
        + "console.events console.messages",
        "django celery",
    ),
    # Streams stay open on the event loop; one thread asks the database for all of them.
    "console.events": (
        "brokers.controlplane.selectors gateway.access gateway.shared console.monitoring.selectors",
        "django channels asyncio concurrent",
    ),
    # Threads read records for streams that stay open on the event loop.
    "console.messages": (
        READ_OF_BROKERS
        + "gateway.moments console.events console.preferences console.spreadsheets "
        + "gateway.kafka gateway.access gateway.addresses",
        "django asyncio concurrent threading",
    ),
    # For pages and for streams.
    "console.preferences": ("", "django"),
    "console.spreadsheets": ("", ""),
    # One process with a loop of its own, and the thread by which a web server follows it.
    "console.monitoring": (
        WATCHED
        + "console.monitoring.samples console.monitoring.packing console.monitoring.rings "
        + "brokers.clock brokers.key_files brokers.beats brokers.http",
        "asyncio threading signal",
    ),
    # The one writer of the one file of the collector.
    "console.monitoring.samples": (
        "console.monitoring.packing console.monitoring.rings",
        "sqlite3 threading",
    ),
    # Its rows: values in columns, and the steps of a series.
    "console.monitoring.packing": ("", ""),
    "console.monitoring.rings": ("", ""),
    # Samples into a topic, by the house's client, in a thread that may wait for brokers.
    "console.monitoring.metrics_topic": ("console.monitoring gateway.kafka", "threading"),
    # Where the collector meets the database that names the brokers.
    "console.management": (
        WATCHERS_DOORS + "console.monitoring brokers.cluster brokers.clock",
        "django",
    ),
    "spark_integration": ("", "pyspark pyarrow confluent_kafka"),
    # What travels to executors: nothing of ours but itself.
    "spark_integration.datasource": ("spark_integration.datasource.wire", "pyspark pyarrow"),
    "spark_integration.datasource.wire": ("", "socket ssl"),
    # Starts Java, and holds the folders of a session by a lock.
    "spark_integration.jobs": (
        # Which Spark is new enough, it asks what has to run on it.
        "spark_integration.datasource.releases",
        "pyspark subprocess signal fcntl threading",
    ),
    # Outside the product: a benchmark may measure any room of the broker process or the agent.
    "bench": (
        PURE
        + "brokers.storage brokers.security brokers.replication brokers.coordination "
        + "brokers.server brokers.controlplane brokers.key_files console.monitoring gateway.access "
        + "gateway.kafka gateway.rest gateway.ws gateway.server cli.installer tests.suite.maven "
        + "spark_integration.datasource spark_integration.jobs",
        ANYTHING,
    ),
    # Django's own door: settings by name, nothing else.
    "manage": ("", "django"),
}

# Packages with few doors: package -> the modules that may import it.
DOORS: dict[str, frozenset[str]] = {
    "crc32c": frozenset(
        {"brokers.protocol.records.crc32c", "spark_integration.datasource.wire.crc32c"}
    ),
    **dict.fromkeys(
        ("lz4", "zstandard", "cramjam", "isal"),
        frozenset({"brokers.protocol.records.compression"}),
    ),
    # Bodies of calls and answers, too.
    "zlib": frozenset(
        {
            "brokers.protocol.records.compression",
            "gateway.rest.compression",
            "gateway.rest.inflating",
        }
    ),
    # Whole files of a bucket, too.
    "gzip": frozenset({"brokers.protocol.records.compression", "connectors.plugins.s3.formats"}),
    "msgspec": frozenset(
        {
            "brokers.cluster.link",
            "connectors.redrive_plans",
            "console.messages.msgpack",
            "gateway.access.seals",
            "gateway.rest.produce",
            "gateway.rest.records",
            "gateway.shared.layer",
            "gateway.ws",
        }
    ),
    # Imports by name pass this map unseen; who opens the door has a table of names.
    **dict.fromkeys(
        ("importlib", "pkgutil", "runpy"),
        frozenset(
            {
                "brokers.protocol.apis",
                "brokers.protocol.handbook",
                # Loads one extension module of its package, and not the package.
                "brokers.protocol.records.crc32c",
                "cli.commands",
                # Which connectors there are: folders, by their own names.
                "connectors.registry",
            }
        ),
    ),
}
# A checksum is no codec, and data files of a package are no code.
FREE = frozenset({"zlib.crc32", "importlib.resources", "importlib.metadata"})

# The last words of functions that import what a string names.
LOADERS = frozenset({"import_module", "__import__", "resolve_name", "run_module", "import_string"})


def room_of(dotted: str) -> str | None:
    """Return the longest room that holds a name; None for what is not ours, or lies in no room."""
    return max((room for room in MAY_IMPORT if is_within(dotted, room)), key=len, default=None)


def violations(sources: Iterable[Source]) -> list[str]:
    bad = []
    for source in sources:
        here = room_of(source.dotted)
        if here is None:
            if source.dotted != "brokers" or list(source.imports()):
                bad.append(f"{source.path}: belongs to no room of the map")
            continue
        bad += [
            f"{source.path}:{line}: {here} may not import {name}"
            for line, name in source.imports()
            if crosses(here, name) or smuggles(here, name) or forces_door(source.dotted, name)
        ]
        bad += [f"{source.path}:{line}: {wrong}" for line, wrong in hidden_imports(source, here)]
    return bad


def circle(sources: Iterable[Source]) -> Sequence[str]:
    """Return rooms that import each other in a circle, in order; none if there is no circle."""
    imported: dict[str, set[str]] = {}
    for source in sources:
        if (here := room_of(source.dotted)) is not None:
            there = {room_of(name) for _, name in source.imports()}
            imported.setdefault(here, set()).update(room for room in there if room)
    try:
        TopologicalSorter({here: there - {here} for here, there in imported.items()}).prepare()
    except CycleError as error:
        found: Sequence[str] = error.args[1]
        return found
    return ()


def crosses(here: str, name: str) -> bool:
    """Tell whether an import leaves the room for one that its row does not name."""
    there = room_of(name)
    ours = there is not None or is_within(name, "brokers") or is_within(name, "tests")
    allowed = MAY_IMPORT[here][0].split()
    return ours and there != here and not any(is_within(name, room) for room in allowed)


def smuggles(here: str, name: str) -> bool:
    """Tell whether an import brings something guarded that the room's row does not grant."""
    granted = MAY_IMPORT[here][1].split()
    return ANYTHING not in granted and any(
        kind not in granted and guarded not in granted
        for kind, members in GUARDED.items()
        for guarded in members
        # `import http` is as good as `import http.client` where anybody else imported that.
        if is_within(name, guarded) or is_within(guarded, name)
    )


def forces_door(dotted: str, name: str) -> bool:
    doors = DOORS.get(name.partition(".")[0])
    # Where anything may be imported, somebody else's package is the thing compared with.
    if doors is None or ANYTHING in MAY_IMPORT[room_of(dotted) or ""][1]:
        return False
    is_free = any(is_within(name, free) for free in FREE)
    return not is_free and not any(is_within(dotted, door) for door in doors)


def hidden_imports(source: Source, here: str) -> Iterator[tuple[int, str]]:
    """Imports by a name in a string: a table may fill in a module, and not leave its room."""
    for function, call in source.calls():
        if function.rpartition(".")[2] not in LOADERS:
            continue
        for named in (*call.args[:1], *(keyword.value for keyword in call.keywords)):
            match named:
                case ast.Constant(value=str(name)):
                    yield call.lineno, f"{name} is imported by a string, a statement can be checked"
                case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]):
                    # What follows the last dot may be half a name.
                    package = start.rpartition(".")[0]
                    if crosses(here, package) or smuggles(here, package):
                        yield call.lineno, f"{here} may not import {package}"
