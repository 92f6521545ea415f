"""The changes an agent keeps in memory."""

import pytest

from brokers.cluster import link
from brokers.cluster.changes import Change, ConfigsChanged, PartitionsAdded
from brokers.cluster.image import ClusterImage, Position, ResourceType
from brokers.cluster.store import MetadataRegressed
from tests.database import project_home

project_home()

from brokers.controlplane.history import Entry, History, Unreadable  # noqa: E402


def entry(version: int) -> Entry:
    record = ConfigsChanged(ResourceType.BROKER, "", (("log.retention.ms", str(version)),))
    change = Change(position=at(version), records=(record,))
    return Entry(position=change.position, encoded=link.encode_change(change))


def at(version: int, salt: bytes = b"") -> Position:
    return Position(version=version, id=salt.rjust(8, b"-") + version.to_bytes(8, "big"))


def history(*, upto: int = 0, kept: int = 10, kept_bytes: int = 10**6) -> History:
    made = History(ClusterImage(cluster_id="c"), (), kept=kept, kept_bytes=kept_bytes)
    for version in range(1, upto + 1):
        made.append(entry(version))
    return made


def test_the_image_follows_what_is_appended() -> None:
    known = history(upto=3)

    assert known.position == at(3)
    assert known.image.configs_of(ResourceType.BROKER, "")["log.retention.ms"] == "3"


def test_a_change_comes_out_of_its_frames_as_it_went_in() -> None:
    assert entry(7).change.position == at(7)
    assert entry(7).change.records[0] == ConfigsChanged(
        ResourceType.BROKER, "", (("log.retention.ms", "7"),)
    )


@pytest.mark.parametrize(
    "encoded",
    [
        # Another kind of message, half of one, and a change of what is not there.
        link.encode(link.Pong()),
        link.encode(link.Outcomes(request_no=1, outcomes=())),
        link.encode_change(
            Change(position=Position(version=3), records=(PartitionsAdded(bytes(16), 5, ()),))
        ),
    ],
)
def test_a_change_that_says_nothing_here_moves_nothing(encoded: bytes) -> None:
    known = history(upto=2)

    with pytest.raises(Unreadable):
        known.append(Entry(position=at(3), encoded=encoded))

    assert known.position == at(2)
    assert known.next_after(at(2)) is None


def test_changes_that_are_forgotten_send_readers_to_the_image() -> None:
    known = history(upto=3)

    known.forget_changes()

    assert not known.is_known(at(2))
    assert known.is_known(at(3))
    known.append(entry(4))
    assert known.next_after(at(3)) == entry(4)


def test_a_reader_goes_on_from_what_is_kept_and_begins_anew_before_it() -> None:
    known = history(upto=8, kept=3)

    assert [version for version in range(1, 9) if known.is_known(at(version))] == [6, 7, 8]
    following = known.next_after(at(6))
    assert following is not None
    assert following.position == at(7)
    assert known.next_after(at(8)) is None


def test_changes_are_kept_by_their_weight_too_and_the_newest_always() -> None:
    size = len(entry(1).encoded)

    assert [v for v in range(1, 9) if history(upto=8, kept_bytes=3 * size).is_known(at(v))] == [
        6,
        7,
        8,
    ]
    assert history(upto=8, kept_bytes=1).next_after(at(7)) is not None


def test_nothing_seen_means_a_whole_image() -> None:
    assert not history().is_known(Position())
    assert not history(upto=2).is_known(Position())


@pytest.mark.parametrize("position", [at(4), at(3, b"x"), at(2, b"x")])
def test_a_position_that_never_was_is_refused(position: Position) -> None:
    with pytest.raises(MetadataRegressed):
        history(upto=3).is_known(position)
