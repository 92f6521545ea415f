"""Whether another try may help where a Connect server does not answer as it should."""

import pytest

from connectors.plugins.spark.server_errors import of_server
from connectors.sdk.errors import ConnectorError, RetriableError
from spark_integration.jobs.targets import parse_target
from tests.spark_integration.jobs.test_faults import Code, SparkError

SHARED = "shared"
TARGET = parse_target("sc://spark.example:15002", token=SHARED)
GRPC = '<_InactiveRpcError of RPC:\n\tdetails = "Connection refused"\n\tdebug = "x"\n>'
AWAY = SparkError(GRPC, Code.UNAVAILABLE)


def meaning(error: Exception, *, tries: int = 0, had_session: bool = True) -> ConnectorError | None:
    return of_server(error, TARGET, tries=tries, most_tries=5, had_session=had_session)


def test_a_server_that_is_away_is_asked_again_however_long_it_takes() -> None:
    found = meaning(AWAY, tries=1000, had_session=False)

    assert isinstance(found, RetriableError)
    assert str(found) == (
        "the Connect server sc://spark.example:15002/ cannot be reached: start it, or set"
        " SAMSA_SPARK to another one (Connection refused)"
    )


def test_a_server_that_ends_with_each_batch_ends_the_task() -> None:
    first, last = meaning(AWAY, tries=4), meaning(AWAY, tries=5)

    assert isinstance(first, RetriableError)
    assert not isinstance(last, RetriableError)
    assert "6 times in a row" in str(last)


@pytest.mark.parametrize("tries", [0, 1000])
def test_a_session_that_was_forgotten_is_made_again(tries: int) -> None:
    found = meaning(SparkError("[INVALID_HANDLE.SESSION_CLOSED] x", Code.INTERNAL), tries=tries)

    assert isinstance(found, RetriableError)


def test_a_token_that_is_wrong_ends_the_task_and_is_not_shown() -> None:
    found = meaning(SparkError("Invalid authentication token", Code.UNAUTHENTICATED))

    assert isinstance(found, ConnectorError)
    assert not isinstance(found, RetriableError)
    assert "set SAMSA_SPARK_TOKEN" in str(found)
    assert SHARED not in str(found)


def test_what_a_query_did_wrong_says_nothing_of_the_server() -> None:
    assert meaning(SparkError("[DIVIDE_BY_ZERO] x", Code.INTERNAL)) is None
