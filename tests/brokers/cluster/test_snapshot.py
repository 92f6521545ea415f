"""An image in pieces, and an image out of them."""

import pytest

from brokers.cluster.image import ClusterImage, Position, ResourceType
from brokers.cluster.proposals import AlterConfigs, ConfigEdit, DeleteTopic
from brokers.cluster.snapshot import (
    PARTITIONS_PER_PIECE,
    ImageBuilder,
    TopicPiece,
    pieces_of,
)
from tests.fakes.twin import Twin


def some_image() -> ClusterImage:
    twin = Twin()
    twin.register_now()
    twin.register_now(is_fenced=True)
    twin.create_topic("small")
    twin.create_topic("large", partitions=3 * PARTITIONS_PER_PIECE + 1)
    twin.create_topic("set", configs={"retention.ms": "5", "cleanup.policy": "compact"})
    twin.create_topic("gone")
    twin.propose_now(
        DeleteTopic(name="gone"),
        AlterConfigs(
            resource_type=ResourceType.BROKER,
            name="",
            edits=(ConfigEdit(key="log.retention.ms", value="7"),),
        ),
    )
    return twin.image


def test_an_image_made_of_its_pieces_is_the_same() -> None:
    image = some_image()

    builder = ImageBuilder(image.cluster_id)
    for piece in pieces_of(image):
        builder.add(piece)

    assert builder.image(image.position) == image


def test_no_piece_has_more_partitions_than_a_slice_of_time_allows() -> None:
    pieces = [piece for piece in pieces_of(some_image()) if isinstance(piece, TopicPiece)]

    assert [(piece.name, len(piece.partitions)) for piece in pieces] == [
        ("small", 1),
        ("large", PARTITIONS_PER_PIECE),
        ("large", PARTITIONS_PER_PIECE),
        ("large", PARTITIONS_PER_PIECE),
        ("large", 1),
        ("set", 1),
    ]


def test_a_piece_that_does_not_follow_is_a_bug() -> None:
    large = [piece for piece in pieces_of(some_image()) if isinstance(piece, TopicPiece)][2]

    with pytest.raises(AssertionError, match="has 0 partitions when those from 256 come"):
        ImageBuilder("c").add(large)


def test_nothing_makes_an_empty_image() -> None:
    assert ImageBuilder("c").image(Position()) == ClusterImage(cluster_id="c")
