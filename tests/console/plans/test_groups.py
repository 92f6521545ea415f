"""Changes of groups as a browser goes through them, against a running broker."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from html import unescape
from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from kafka import KafkaAdminClient, TopicPartition
from kafka.structs import OffsetAndMetadata

from brokers.controlplane import audit
from cli.groups import groups
from console.monitoring.selectors import NotThere
from console.preferences import TIMES_COOKIE, ZONE_COOKIE
from console.queries import live
from gateway.access.operations import Kind, Operation
from gateway.kafka.admin import Admin
from gateway.kafka.groups import Groups
from gateway.kafka.values import Place
from tests.builders import live as rows
from tests.builders import users
from tests.builders.live import Told
from tests.cli.data_commands import Shell
from tests.console import cluster_rows
from tests.console.group_stage import (
    RECORDS,
    Stage,
    after,
    cluster_at,
    make_topic,
    shown,
)
from tests.console.plan_pages import seal_in
from tests.raw_groups import Coordinated, patiently
from tests.suite.services import shared_home

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("group-plans")]

SHOWN = cluster_rows.CLUSTER_ID
# 12:00:03 in the zone of the test's browser.
AT_THREE = "2026-01-31T12:00:03"
MODES: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    # mode: (its fields, where partitions with 4, 2 and 0 committed go)
    "earliest": ({}, (0, 0, 0)),
    "latest": ({}, RECORDS),
    "offset": ({"offset": "7"}, (7, 5, 0)),
    "time": ({"time": AT_THREE}, (3, 3, 0)),
    "ago": ({"ago": "1", "unit": "minutes"}, RECORDS),
    "shift": ({"shift": "-3"}, (1, 0, 0)),
    "current": ({}, (4, 2, 0)),
}


@pytest.fixture(scope="module")
def bootstrap() -> str:
    return shared_home().bootstrap


@pytest.fixture(scope="module")
def topic(bootstrap: str) -> str:
    # Of this worker: the tests of the file may be divided among several.
    return make_topic(bootstrap, f"orders-{uuid4().hex[:8]}")


@pytest.fixture
def stage(bootstrap: str, topic: str, unique: Callable[[str], str]) -> Stage:
    cluster_at(bootstrap)
    return Stage(bootstrap=bootstrap, topic=topic, group=unique("billing"))


@pytest.fixture
def reading(stage: Stage) -> Iterator[Coordinated]:
    """A member that reads the topic and never speaks again."""
    with closing(Coordinated(stage.bootstrap, stage.group)) as opened:
        member_id, epoch = patiently(lambda: opened.enter([stage.topic]))
        opened.commit({(stage.topic, 0): 4}, member_id=member_id, generation=epoch)
        yield opened


def applied(browser: Client, sealed: str, **fields: str) -> Any:
    return browser.post("/plans/apply", {"plan": sealed, **fields})


def entries() -> list[audit.Entry]:
    return audit.entries(cluster_id=SHOWN)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_previewed_for_an_empty_group_is_what_is_applied(
    stage: Stage, alice: Client, mode: str
) -> None:
    fields, wanted = MODES[mode]
    stage.commit(4, 2, 0)
    before = stage.committed()

    previewed = stage.preview(alice, mode, **fields)
    rows = shown(previewed)

    assert stage.committed() == before
    assert rows == {place: (offset, wanted[place.partition]) for place, offset in before.items()}
    if mode == "current":
        assert "Everything is already as it would be" in previewed.content.decode()
        return
    answer = applied(alice, seal_in(previewed))
    assert answer.status_code == 302, answer.content.decode()
    assert stage.committed() == after(rows)


@pytest.mark.parametrize("mode", MODES)
def test_a_group_that_reads_is_shown_and_refused(
    stage: Stage, reading: Coordinated, alice: Client, mode: str
) -> None:
    previewed = stage.preview(alice, mode, **MODES[mode][0])
    page = previewed.content.decode()

    assert f"Group {stage.group} is Stable with 1 member" in page
    assert "stop its consumers, then preview again" in page
    assert "Apply this plan" not in page
    assert applied(alice, seal_in(previewed)).status_code == 409
    assert stage.committed() == {stage.place(0): 4}


@pytest.mark.parametrize("mode", MODES)
def test_a_group_that_never_committed_gets_its_first_offsets(
    stage: Stage, alice: Client, mode: str
) -> None:
    previewed = stage.preview(alice, mode, scope="some", topics=stage.topic, **MODES[mode][0])

    if mode == "shift":
        assert previewed.status_code == 400
        assert "it has no committed offset to shift" in previewed.content.decode()
        assert stage.committed() == {}
        return
    rows = shown(previewed)
    wanted = RECORDS if mode == "current" else MODES[mode][1]
    assert rows == {stage.place(i): (None, offset) for i, offset in enumerate(wanted)}
    assert applied(alice, seal_in(previewed)).status_code == 302
    assert stage.committed() == after(rows)


@pytest.mark.parametrize("mode", MODES)
def test_a_topic_that_was_deleted_is_left_out_and_the_others_are_set(
    stage: Stage, alice: Client, unique: Callable[[str], str], mode: str
) -> None:
    fields, wanted = MODES[mode]
    gone = make_topic(stage.bootstrap, unique(f"gone-{mode}"), (1,))
    stage.commit(4)
    stage.commit(1, topic=gone)
    Admin(stage.connection).delete([gone])

    previewed = stage.preview(alice, mode, scope="some", topics=f"{stage.topic}:0 {gone}", **fields)

    page = previewed.content.decode()
    assert f"topic {gone}" in page
    assert "deleted" in page
    rows = shown(previewed)
    assert rows == {stage.place(0): (4, wanted[0])}
    if mode != "current":
        assert applied(alice, seal_in(previewed)).status_code == 302
        assert stage.committed()[stage.place(0)] == wanted[0]


def test_the_offsets_of_another_group_and_of_a_file_are_taken_over(
    stage: Stage, alice: Client, unique: Callable[[str], str]
) -> None:
    source = unique("source")
    Groups(stage.connection).commit(source, {stage.place(0): 9, stage.place(1): 99})
    stage.commit(4)
    file = BytesIO(f"{stage.topic},0,2\n{stage.topic},2,7\n".encode())
    file.name = "plan.csv"

    like = stage.preview(alice, "group", source=source)
    assert shown(like) == {stage.place(0): (4, 9), stage.place(1): (None, 5)}
    assert "offset 99 is beyond the end 5, so the end" in like.content.decode()
    assert applied(alice, seal_in(like)).status_code == 302
    from_file = stage.preview(alice, "file", file=file)
    assert shown(from_file) == {stage.place(0): (9, 2), stage.place(2): (None, 0)}
    assert applied(alice, seal_in(from_file)).status_code == 302

    assert stage.committed() == {stage.place(0): 2, stage.place(1): 5, stage.place(2): 0}


def test_an_exported_plan_is_what_a_file_takes(stage: Stage, alice: Client) -> None:
    stage.commit(4, 2)
    sealed = seal_in(stage.preview(alice, "latest"))

    answer = alice.post("/plans/show", {"plan": sealed, "form": "csv"})

    assert answer.content.decode() == f"{stage.topic},0,10\n{stage.topic},1,5\n"
    assert answer["Content-Disposition"] == 'attachment; filename="plan.csv"'


def test_the_audit_has_what_was_begun_and_what_became_of_it(stage: Stage, alice: Client) -> None:
    stage.commit(4, 2)

    applied(alice, seal_in(stage.preview(alice, "earliest")))

    done, begun = entries()
    first, second = f"{stage.topic} 0", f"{stage.topic} 1"
    for entry in (done, begun):
        assert (entry.kind, entry.subject, entry.name) == ("reset offsets", "group", stage.group)
        assert (entry.actor, entry.via, entry.address) == ("User:alice", "browser", "127.0.0.1")
        assert entry.before == {first: "4", second: "2"}
        assert entry.after == {first: "0", second: "0"}
    assert (begun.outcome, done.outcome) == ("BEGUN", "NONE")
    assert done.message == f"begun as entry {begun.number}"
    page = alice.get("/changes?kind=reset+offsets").content.decode()
    assert page.count(f"group {stage.group}</td>") == 2
    assert "Begun" in page
    assert not audit.verify(cluster_id=SHOWN).faults


def test_a_plan_that_is_applied_twice_is_done_once(stage: Stage, alice: Client) -> None:
    stage.commit(4)
    sealed = seal_in(stage.preview(alice, "latest"))
    applied(alice, sealed)

    answer = applied(alice, sealed)

    assert answer.status_code == 302
    assert "so nothing was done" in alice.get("/").content.decode()
    assert len(entries()) == 2


@pytest.mark.parametrize("page", ["reset", "offsets/delete", "delete"])
def test_a_plan_is_refused_once_offsets_have_moved(stage: Stage, alice: Client, page: str) -> None:
    stage.commit(4, 2)
    if page == "reset":
        previewed: Any = stage.preview(alice, "earliest")
    else:
        previewed = alice.get(stage.path(page, topic=stage.topic))
    stage.commit(5)

    answer = applied(alice, seal_in(previewed), typed=stage.group)

    shown_page = answer.content.decode()
    assert answer.status_code == 409
    assert "The group has changed since you looked" in shown_page
    assert f"topic {stage.topic}, partition 0: committed is 5; it was 4" in shown_page
    assert stage.committed() == {stage.place(0): 5, stage.place(1): 2}
    [entry] = entries()
    assert (entry.outcome, entry.name) == ("INVALID_UPDATE_VERSION", stage.group)
    assert "committed is 5; it was 4" in entry.message


def test_a_plan_is_refused_once_the_group_has_members(stage: Stage, alice: Client) -> None:
    stage.commit(4)
    reset = seal_in(stage.preview(alice, "earliest"))
    deletion = seal_in(alice.get(stage.path("delete")))
    with closing(Coordinated(stage.bootstrap, stage.group)) as opened:
        patiently(lambda: opened.enter([stage.topic]))

        answers = [applied(alice, sealed, typed=stage.group) for sealed in (reset, deletion)]

    for answer in answers:
        assert answer.status_code == 409
        page = answer.content.decode()
        assert f"group {stage.group} is Stable with 1 member; it was Empty with no members" in page
    assert stage.committed() == {stage.place(0): 4}


def test_a_plan_is_refused_once_its_topic_was_made_again(
    stage: Stage, alice: Client, unique: Callable[[str], str]
) -> None:
    name = make_topic(stage.bootstrap, unique("again"), (3,))
    sealed = seal_in(stage.preview(alice, "latest", scope="some", topics=name))
    Admin(stage.connection).delete([name])
    make_topic(stage.bootstrap, name, (3,))

    answer = applied(alice, sealed)

    assert answer.status_code == 409
    assert f"topic {name} was deleted and created again" in answer.content.decode()


def test_offsets_of_one_topic_are_deleted_and_those_of_others_stay(
    stage: Stage, alice: Client, unique: Callable[[str], str]
) -> None:
    other = make_topic(stage.bootstrap, unique("other"), (1,))
    stage.commit(4, 2)
    stage.commit(1, topic=other)

    previewed: Any = alice.get(stage.path("offsets/delete", topic=stage.topic))
    answer = applied(alice, seal_in(previewed))

    assert shown(previewed) == {stage.place(0): (4, None), stage.place(1): (2, None)}
    assert answer.status_code == 302
    assert stage.committed() == {stage.place(0, other): 1}
    assert entries()[0].kind == "delete offsets"


def test_offsets_of_a_topic_that_members_read_are_kept(
    stage: Stage, reading: Coordinated, alice: Client
) -> None:
    answer = alice.get(stage.path("offsets/delete", topic=stage.topic))

    page = answer.content.decode()
    assert "stop the consumers that read it, then preview again" in page
    assert "Apply this plan" not in page


def test_a_group_is_deleted_once_its_name_is_typed(stage: Stage, alice: Client) -> None:
    stage.commit(4, 2)
    previewed: Any = alice.get(stage.path("delete"))
    sealed = seal_in(previewed)

    mistyped = applied(alice, sealed, typed="billin")
    assert mistyped.status_code == 400
    assert "is not the name of the group" in mistyped.content.decode()
    assert stage.committed()
    assert applied(alice, sealed, typed=stage.group).status_code == 302

    assert stage.committed() == {}
    assert stage.group not in {group.name for group in Groups(stage.connection).summaries()}
    assert entries()[0].kind == "delete group"
    assert entries()[0].before[f"{stage.topic} 0"] == "4"
    assert alice.get(stage.path("delete")).status_code == 400


def test_a_change_is_seen_by_kafka_python_at_once(stage: Stage, alice: Client) -> None:
    stage.commit(4, 2)
    with closing(KafkaAdminClient(bootstrap_servers=stage.bootstrap)) as admin:
        applied(alice, seal_in(stage.preview(alice, "earliest")))
        reset = admin.list_group_offsets(stage.group)[stage.group]
        deleted = seal_in(alice.get(stage.path("offsets/delete", topic=stage.topic)))
        applied(alice, deleted)
        left = admin.list_group_offsets(stage.group)[stage.group]

        admin.alter_group_offsets(
            stage.group, {TopicPartition(stage.topic, 1): OffsetAndMetadata(3, "", -1)}
        )
        other_way = shown(stage.preview(alice, "latest"))

    assert other_way == {stage.place(1): (3, 5)}
    assert {place.partition: told.offset for place, told in reset.items()} == {0: 0, 1: 0}
    assert not left
    assert TopicPartition(stage.topic, 0) in reset


def test_a_night_that_changes_clocks_gives_the_same_offsets_in_two_zones(
    stage: Stage, alice: Client, unique: Callable[[str], str]
) -> None:
    # A record at each of the two half past twos of one night in Berlin.
    first, second = (datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1))
    first_ms = int(first.timestamp() * 1000)
    name = make_topic(stage.bootstrap, unique("night"), (2,), first_ms=first_ms, apart_ms=3_600_000)
    nights = [
        ("Europe/Berlin", "2026-10-25T02:30", first.isoformat(), 0),
        ("Europe/Berlin", "2026-10-25T02:30", second.isoformat(), 1),
        ("America/New_York", "2026-10-24T20:30", "", 0),
        ("America/New_York", "2026-10-24T21:30", "", 1),
    ]

    for zone, typed, moment, offset in nights:
        alice.cookies[TIMES_COOKIE], alice.cookies[ZONE_COOKIE] = "local", zone
        fields = {"zone": zone, "time": typed, "moment": moment, "scope": "some", "topics": name}
        rows = shown(stage.preview(alice, "time", **fields))
        assert rows == {stage.place(0, name): (None, offset)}, (zone, typed)


def test_topics_that_a_user_may_not_view_are_left_out_and_not_named(
    stage: Stage, unique: Callable[[str], str]
) -> None:
    secret = make_topic(stage.bootstrap, unique("wages"), (1,))
    stage.commit(4)
    stage.commit(1, topic=secret)
    browser = visitor(stage, stage.topic)

    reset = stage.preview(browser, "latest")
    named = stage.preview(browser, "latest", scope="some", topics=secret)
    deletion: Any = browser.get(stage.path("delete"))

    assert shown(reset) == {stage.place(0): (4, 10)}
    assert shown(deletion) == {stage.place(0): (4, None)}
    for answer in (reset, deletion):
        page = answer.content.decode()
        assert secret not in page
        assert "1 topic that you may not view" in page
        assert f"--topic {stage.topic}" in page or answer is deletion
    assert named.status_code == 400
    assert "1 topic that you may not view" in named.content.decode()
    assert applied(browser, seal_in(deletion), typed=stage.group).status_code == 302
    assert stage.committed() == {}
    assert entries()[0].before[f"{secret} 0"] == "1"


def visitor(stage: Stage, topic: str) -> Client:
    """Return a browser of a user with all rights on the group, who may view one topic."""
    user = users.user("some", role=None)
    for operation in (Operation.VIEW, Operation.RESET_GROUPS, Operation.DELETE_GROUPS):
        users.grant(user, operation, kind=Kind.GROUP, pattern=stage.group)
    users.grant(user, Operation.VIEW, kind=Kind.TOPIC, pattern=topic)
    browser = Client()
    browser.force_login(user)
    return browser


def test_whoever_changes_a_plan_finds_the_form_as_it_was(stage: Stage, alice: Client) -> None:
    stage.commit(4)
    asked = {"offset": "7", "shift": "9", "scope": "some", "topic": [stage.topic]}
    page = stage.preview(alice, "offset", **asked).content.decode()

    found = re.search(r'href="([^"]+)">Change it</a>', page)
    assert found is not None
    form = alice.get(unescape(found[1])).content.decode()

    assert 'value="offset" checked' in form
    assert 'name="offset" min="0" value="7"' in form
    assert 'name="shift" value=""' in form
    assert 'value="some" checked' in form
    assert f">{stage.topic}</textarea>" in form


@pytest.mark.parametrize("mode", MODES)
def test_the_command_that_is_shown_plans_the_same(stage: Stage, alice: Client, mode: str) -> None:
    stage.commit(4, 2)

    answer = stage.preview(alice, mode, scope="some", topics=stage.topic + ":0,1", **MODES[mode][0])

    command = unescape(answer.content.decode().partition("<code>./samsa groups ")[2])
    words = shlex.split(command.partition("</code>")[0])
    assert words.pop() == "--execute"
    planned = Shell(stage.bootstrap).json(groups, *words)
    assert shown(answer) == {
        stage.place(each["partition"]): (each["before"], each["after"])
        for each in planned["partitions"]
    }


@pytest.mark.parametrize("is_modern", [True, False])
def test_a_group_whose_members_have_left_is_reset(
    stage: Stage, alice: Client, is_modern: bool
) -> None:
    with closing(Coordinated(stage.bootstrap, stage.group)) as opened:
        if is_modern:
            member_id, _ = patiently(lambda: opened.enter([stage.topic]))
            opened.beat(member_id, -1)
        else:
            joined = patiently(lambda: opened.join([stage.topic]))
            assigned = {joined.member_id: {stage.topic: range(1)}}
            opened.sync(joined.member_id, joined.generation_id, assigned)
            opened.leave(joined.member_id)
        stage.commit(4)

        previewed = stage.preview(alice, "earliest")
        answer = applied(alice, seal_in(previewed))

    assert answer.status_code == 302
    assert stage.committed() == {stage.place(0): 0}


def test_page_after_a_reset_waits_for_a_look_that_saw_it(
    stage: Stage, alice: Client, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reset(mode: str) -> str:
        answer = applied(alice, seal_in(stage.preview(alice, mode)))
        assert answer.status_code == 302
        return alice.get(answer["Location"]).content.decode()

    def detail(**query: str | int) -> Mapping[str, Any]:
        """Answer as a collector that sees a change at the second request."""
        if "first" in query:
            raise NotThere("a page's own question")
        seen.append(stage.committed())
        committed = seen[-2] if len(seen) > 1 else {}
        partitions = [[place.topic, place.partition, at] for place, at in committed.items()]
        return {"partitions": partitions, "is_published": True}

    seen: list[Mapping[Place, int]] = []
    monkeypatch.setattr(live, "SEEN_SECONDS", 0.0)
    monkeypatch.setattr(live, "ASK_SECONDS", 0.0)
    stage.commit(4, 2, 0)
    told.cluster_id = SHOWN
    told.put(rows.group(stage.group, lag=9), rows.pair(stage.group, stage.topic, lag=9))
    told.answers["/group"] = detail

    # Lag that only grew meanwhile is not the change.
    told.put(rows.pair(stage.group, stage.topic, lag=10))
    assert "The collector has not seen the change yet" in reset("earliest")
    monkeypatch.setattr(live, "SEEN_SECONDS", 10.0)
    assert "The collector has not seen the change yet" not in reset("latest")
