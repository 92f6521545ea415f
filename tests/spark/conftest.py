"""What tests on Spark share: the doors through which a Spark reaches topics."""

import pytest

from tests.extras import requires

DOORS = ("samsa", pytest.param("kafka", marks=requires("maven-spark")))


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> str:
    """The word of a format: ours, and that of Spark's own JAR, which has to do the same."""
    name: str = request.param
    return name
