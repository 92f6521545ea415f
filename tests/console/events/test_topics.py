"""What can be listened to, and by whom."""

import pytest

from console.events.topics import KINDS, is_topic, may_hear
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation, Role

ID = "0hUvQ2rWSx6lJ3u8T6kRrg"


@pytest.mark.parametrize(
    "text", ["", "cluster", "cluster:", ":x", "pages:x", "cluster:x\ny", "cluster:" + "x" * 400]
)
def test_a_text_without_a_known_kind_and_a_name_is_no_topic(text: str) -> None:
    assert not is_topic(text)
    assert is_topic(f"cluster:{ID}")


@pytest.mark.parametrize("kind", KINDS)
def test_without_rights_nothing_is_heard_and_an_admin_hears_all(kind: str) -> None:
    assert not may_hear(Rights(), f"{kind}:{ID}")
    assert may_hear(Rights([Grant(role=Role.ADMIN)]), f"{kind}:{ID}")


def test_whoever_may_view_a_part_of_a_cluster_hears_that_it_changed() -> None:
    rights = Rights([Grant(operation=Operation.VIEW, cluster=ID)])

    assert may_hear(rights, f"cluster:{ID}")
    assert not may_hear(rights, "cluster:another")


def test_numbers_of_the_whole_cluster_are_for_those_who_may_view_all_of_it() -> None:
    some = Rights([Grant(operation=Operation.VIEW, cluster=ID, kind=Kind.TOPIC)])

    assert may_hear(some, f"live:{ID}")
    assert not may_hear(some, f"health:{ID}")
    assert may_hear(Rights([Grant(role=Role.VIEWER, cluster=ID)]), f"health:{ID}")
