"""What tests of speed have in common: the means that a broker takes when it starts."""

import resource
from collections.abc import Iterator

import pytest

from brokers.server.descriptors import raise_limit


@pytest.fixture
def all_descriptors() -> Iterator[int]:
    """As many descriptors as this user may have; how many that are."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_limit()
    yield resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
