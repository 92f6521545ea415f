"""Compares the versions that a plan is based on with the rows, and refuses stale plans.

Runs in the caller's transaction: that of a preview reads a snapshot, and that of a proposal has
locked the named rows, so that nothing changes between the comparison and the commit.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from brokers.cluster import plans
from brokers.cluster.image import ResourceType
from brokers.cluster.plans import Moved
from brokers.cluster.proposals import Expectation, Subject
from brokers.controlplane import models
from brokers.controlplane.services.brokers import MAX_BROKER_ID
from brokers.protocol.errors import KafkaError

# As many variables as a statement of SQLite takes in the oldest version we meet.
NAMES_AT_ONCE: Final = 900
_TYPES: Final = {
    Subject.TOPIC_CONFIGS: ResourceType.TOPIC,
    Subject.BROKER_CONFIGS: ResourceType.BROKER,
}


def versions_of(
    cluster: models.Cluster, subjects: Sequence[tuple[Subject, str]]
) -> dict[tuple[Subject, str], int]:
    """Return the versions of those of these resources that exist."""
    found: dict[tuple[Subject, str], int] = {}
    for subject in Subject:
        # PostgreSQL refuses even queries for a name with a NUL.
        names = sorted({name for of, name in subjects if of is subject and "\0" not in name})
        for start in range(0, len(names), NAMES_AT_ONCE):
            some = names[start : start + NAMES_AT_ONCE]
            found |= {(subject, name): version for name, version in _rows(cluster, subject, some)}
    return found


def moved(cluster: models.Cluster, expects: Iterable[Expectation]) -> tuple[Moved, ...]:
    """Return the resources that have changed; read nothing if nothing is expected."""
    listed = list(dict.fromkeys(expects))
    if not listed:
        return ()
    found = versions_of(cluster, [(each.subject, each.name) for each in listed])
    return plans.moved(listed, found)


def outdated(cluster: models.Cluster, what: Sequence[Moved]) -> KafkaError:
    """Return a refusal with the changed resources and the actor, if the change is still kept."""
    versions = {each.found for each in what}
    rows = cluster.changes.filter(version__in=versions).values_list("version", "summary", "actor")
    causes = {version: f"{summary}, by {actor}" for version, summary, actor in rows}
    return plans.outdated(what, causes)


def _rows(
    cluster: models.Cluster, subject: Subject, names: Sequence[str]
) -> Iterator[tuple[str, int]]:
    match subject:
        case Subject.TOPIC:
            yield from cluster.topics.filter(name__in=names).values_list("name", "version")
        case Subject.BROKER:
            ids = [min(int(name), MAX_BROKER_ID) for name in names if _is_id(name)]
            brokers = cluster.brokers.filter(broker_id__in=ids)
            for broker_id, version in brokers.values_list("broker_id", "version"):
                yield str(broker_id), version
        case Subject.TOPIC_CONFIGS | Subject.BROKER_CONFIGS:
            configs = cluster.configs.filter(resource_type=_TYPES[subject], name__in=names)
            yield from configs.values_list("name", "version")


def brokers_expected(expects: Iterable[Expectation]) -> Iterator[int]:
    """Return the brokers that have to be locked, so that none is fenced before the commit."""
    for each in expects:
        if each.subject is Subject.BROKER and _is_id(each.name):
            yield min(int(each.name), MAX_BROKER_ID)


def _is_id(name: str) -> bool:
    # Ten digits are what an int32 can have.
    return name.isascii() and name.isdigit() and len(name) <= 10
