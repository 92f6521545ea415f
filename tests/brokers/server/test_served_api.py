"""The row of an API as a handler narrows it."""

import pytest

from brokers.protocol.apis import APIS
from brokers.server.served_api import Served


def test_an_api_is_served_as_its_row_says_unless_told_otherwise() -> None:
    assert Served(key=3).api() == APIS[3]


def test_versions_may_be_fewer_and_announced_ones_more() -> None:
    api = Served(key=0, versions=(3, 11), advertised=(0, 11)).api()

    assert api.versions == (3, 11)
    assert api.advertised == (0, 11)
    assert not api.serves(12)


def test_fewer_versions_announce_no_more_by_themselves() -> None:
    assert Served(key=0, versions=(5, 11)).api().advertised == (5, 11)


def test_versions_without_a_codec_are_a_bug() -> None:
    with pytest.raises(AssertionError):
        Served(key=3, versions=(0, 99)).api()
    with pytest.raises(AssertionError):
        Served(key=3, versions=(0, 12), advertised=(0, 13)).api()
