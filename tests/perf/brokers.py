"""A broker in a process of its own, as the tests of speed and of scale ask it and measure it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.broker_targets import Target
from tests.cluster import Cluster, running_cluster


@contextmanager
def one_broker(
    folder: Path, defaults: Mapping[str, str] | None = None
) -> Iterator[tuple[Cluster, Target]]:
    """Run a home without its web server, whose broker has these configs by default."""
    environment = {"SAMSA_DEFAULTS": json.dumps(dict(defaults or {}))}
    with running_cluster(folder, environment=environment) as cluster:
        host, _colon, port = cluster.bootstrap.rpartition(":")
        pid = cluster.pid("broker-1")
        yield cluster, Target(name="broker", host=host, port=int(port), pid=pid, is_ours=True)
