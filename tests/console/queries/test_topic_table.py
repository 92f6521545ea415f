"""All topics of a cluster, and what is kept of them between two looks."""

from console.queries.topic_facets import topic_of
from console.queries.topic_table import Stored, joined, joins, stored_topics
from gateway.access.grants import Grant, Names, Rights
from gateway.access.operations import Role
from tests.builders import live
from tests.builders.live import Told
from tests.console import cluster_rows

ALL = Rights([Grant(role=Role.VIEWER)])
EVERY = Names(is_all=True)


def stored() -> Stored:
    data = stored_topics(None, ALL).data
    assert data is not None
    return data


def test_a_topic_that_did_not_change_is_not_made_again(told: Told) -> None:
    cluster = cluster_rows.cluster()
    for name in "ab":
        cluster_rows.topic(cluster, name)
        told.put(live.topic(name))
    before = stored()
    assert before.frame.live is not None
    first = {t.name: t for t in joined(before, before.frame.live, EVERY, is_old=False)}

    told.put(live.topic("b", size_bytes=7))
    after = stored()
    assert after.frame.live is not None
    second = {t.name: t for t in joined(after, after.frame.live, EVERY, is_old=False)}

    assert second["a"] is first["a"]
    assert second["b"].told is not None
    assert second["b"].told.size_bytes == 7


def test_topics_that_are_gone_are_forgotten() -> None:
    kept = joins.of("one", 10)
    kept.update((name, topic_of(name, None, None, "delete")) for name in "abcdefghijk")

    assert joins.of("one", 11) is kept
    assert joins.of("one", 10) == {}
