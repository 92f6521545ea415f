"""DescribeClientQuotas: there are none, and a filter that makes no sense is refused as by Kafka."""

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from brokers.server.handlers import describe_client_quotas
from tests.fakes.asking import Desk

EXACT, DEFAULT, ANY = range(3)
OF_USER = ("user", EXACT, "a")

# As Apache Kafka 4.3 answers them.
FILTERS = [
    ([], ErrorCode.NONE),
    ([OF_USER], ErrorCode.NONE),
    ([("user", DEFAULT, None), ("client-id", ANY, None)], ErrorCode.NONE),
    ([("ip", EXACT, "192.0.2.1")], ErrorCode.NONE),
    ([("group", EXACT, "a")], ErrorCode.UNSUPPORTED_VERSION),
    ([("", ANY, None)], ErrorCode.INVALID_REQUEST),
    ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
    ([("user", ANY, "a")], ErrorCode.INVALID_REQUEST),
    ([("user", 7, None)], ErrorCode.INVALID_REQUEST),
    ([OF_USER, OF_USER], ErrorCode.INVALID_REQUEST),
    ([("ip", EXACT, "192.0.2.1"), OF_USER], ErrorCode.INVALID_REQUEST),
]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(("parts", "code"), FILTERS, ids=[str(row[0]) for row in FILTERS])
def test_a_filter_finds_nothing_or_is_refused(
    version: int, parts: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    components = [
        ComponentData(entity_type=kind, match_type=match_type, match=match)
        for kind, match_type, match in parts
    ]

    with Desk() as desk:
        request = DescribeClientQuotasRequest(components=components, strict=True)
        answer = desk.ask(describe_client_quotas, version, request)

    assert answer.error_code == code
    assert answer.entries == ([] if code is ErrorCode.NONE else None)
    assert (answer.error_message == "") == (code is ErrorCode.NONE)
