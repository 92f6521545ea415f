"""Which resources can be asked for and altered here."""

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.server.config_resources import check_is_here
from tests.fakes.asking import Desk


def test_this_broker_is_here() -> None:
    with Desk() as desk:
        check_is_here(desk.context, "1")


@pytest.mark.parametrize("name", ["2", "-1", "one", "", "1.0", "9" * 5000])
def test_no_other_broker_is_here(name: str) -> None:
    with Desk() as desk, pytest.raises(KafkaError) as refused:
        check_is_here(desk.context, name)

    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert len(refused.value.message) < 300
