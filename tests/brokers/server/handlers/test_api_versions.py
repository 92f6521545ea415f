"""ApiVersions: the first thing a client asks, and what it concludes from the answer."""

from collections.abc import Iterator

import pytest

from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode
from brokers.protocol.headers import Request
from brokers.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from brokers.server.call import Call
from brokers.server.handlers import api_versions
from brokers.server.handlers.api_versions import supported_features
from brokers.server.served_api import Served
from tests.fakes.asking import Desk, Line

VERSIONS = range(5)
ROWS = (Served(key=18), Served(key=3), Served(key=0, versions=(3, 11), advertised=(0, 11)))


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk() as opened:
        opened.context.apis = {row.key: row.api() for row in ROWS}
        yield opened


def asked(version: int, *, name: str = "samsa-test", release: str = "1.0") -> ApiVersionsRequest:
    if version < 3:
        return ApiVersionsRequest()
    return ApiVersionsRequest(client_software_name=name, client_software_version=release)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_rows_that_are_served_are_told_in_order_with_what_they_announce(
    desk: Desk, version: int
) -> None:
    answer = desk.ask(api_versions, version, asked(version))

    assert answer.error_code == ErrorCode.NONE
    assert [(row.api_key, row.min_version, row.max_version) for row in answer.api_keys] == [
        (0, 0, 11),
        (3, 0, 13),
        (18, 0, 4),
    ]
    assert answer.throttle_time_ms == 0


# Kafka 4.3 says the same of group.version in both.
@pytest.mark.parametrize(("version", "supported"), [(3, []), (4, [("group.version", 0, 1)])])
def test_the_features_that_are_served_are_told_and_no_others(
    desk: Desk, version: int, supported: list[tuple[str, int, int]]
) -> None:
    answer = desk.ask(api_versions, version, asked(version))

    told = [(each.name, each.min_version, each.max_version) for each in answer.supported_features]
    assert told == supported
    levels = [
        (each.name, each.min_version_level, each.max_version_level)
        for each in answer.finalized_features
    ]
    assert levels == [("group.version", 1, 1)]
    assert answer.finalized_features_epoch == 0
    assert answer.zk_migration_ready is False


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_version_without_features_tells_none(desk: Desk, version: int) -> None:
    answer = desk.ask(api_versions, version, asked(version))

    assert (answer.supported_features, answer.finalized_features) == ([], [])


@pytest.mark.parametrize("version", [5, 99, 32_767])
def test_a_version_that_is_too_new_is_answered_in_the_oldest_form(desk: Desk, version: int) -> None:
    call = Call(Request(APIS[18], version, 1, None, memoryview(b"??"), 0), Line(), 0.0)

    answer = api_versions.handle(desk.context, call, ApiVersionsRequest())

    assert answer is not None
    read = codec(ApiVersionsResponse, 0).decode(
        b"".join(codec(ApiVersionsResponse, 0).encode(answer))
    )
    assert read.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(row.api_key, row.min_version, row.max_version) for row in read.api_keys] == [
        (18, 0, 4)
    ]


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "release"),
    [("", "1"), ("a", ""), ("-a", "1"), ("a", "1."), ("a b", "1"), ("ä", "1"), ("a\n", "1")],
)
def test_software_without_a_legal_name_is_refused(
    desk: Desk, version: int, name: str, release: str
) -> None:
    answer = desk.ask(api_versions, version, asked(version, name=name, release=release))

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.api_keys == []


@pytest.mark.parametrize("name", ["a", "7", "apache-kafka-java", "a.b-c", "A--z"])
def test_names_of_real_software_are_legal(desk: Desk, name: str) -> None:
    assert desk.ask(api_versions, 3, asked(3, name=name, release="3.9.0-rc1")).error_code == 0


def test_a_feature_whose_lowest_level_is_0_is_kept_from_clients_that_die_of_it() -> None:
    features = (("group.version", 0, 1), ("metadata.version", 7, 30))

    told = {
        version: [feature.name for feature in supported_features(features, version)]
        for version in VERSIONS
    }

    assert told[3] == ["metadata.version"]
    assert told[4] == ["group.version", "metadata.version"]
