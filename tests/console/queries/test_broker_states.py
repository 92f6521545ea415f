"""The state of a broker: one word, which nothing else on the page contradicts."""

from typing import Final

import pytest

from brokers.cluster.image import Broker
from brokers.controlplane.orders import Place
from console.queries.broker_states import STARTING_MS, UNREAD_MS, state_of
from tests.builders import live

NOW_MS: Final = 1_700_000_000_000


def place(*, registered_ago_ms: int) -> Place:
    return Place(
        broker_id=1,
        epoch=7,
        host="a",
        takes_orders=True,
        registered_at_ms=NOW_MS - registered_ago_ms,
        held_by="",
        held_at_ms=0,
    )


@pytest.mark.parametrize(
    ("is_fenced", "ago_ms", "word"),
    [
        # The collector asks at its former port still.
        (False, 1_000, "Serving"),
        (False, UNREAD_MS, "Silent"),
        (True, 1_000, "Starting"),
        (True, STARTING_MS, "Fenced"),
    ],
)
def test_a_broker_that_came_back_is_not_called_silent_at_once(
    ago_ms: int, word: str, *, is_fenced: bool
) -> None:
    broker = Broker(id=1, host="a", port=9092, epoch=7, is_fenced=is_fenced)
    row = live.broker(1, failure="[Errno 111] Connection refused")

    state = state_of(broker, place(registered_ago_ms=ago_ms), None, row, now_ms=NOW_MS)

    assert state.word == word
