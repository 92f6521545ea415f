"""What clients in wide use get wrong, and what is made of it."""

import pytest

from brokers.protocol.codec import codec
from brokers.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from brokers.server.quirks import MENDS, METADATA, mend_metadata


@pytest.mark.parametrize("version", range(9, 14))
def test_librdkafkas_wish_for_all_topics_is_understood(version: int) -> None:
    flags = 3 if version < 11 else 2
    sent = bytes(4) + b"\1" + bytes(flags - 1) + b"\0"

    mended = MENDS[METADATA](version, memoryview(sent))

    request = codec(MetadataRequest, version).decode(mended)
    assert request.topics is None
    assert request.allow_auto_topic_creation is False


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("topics", [None, [], [MetadataRequestTopic(name="orders")]])
def test_proper_requests_stay_as_they_are(
    version: int, topics: list[MetadataRequestTopic] | None
) -> None:
    if version == 0 and topics is None:
        topics = []
    sent = b"".join(codec(MetadataRequest, version).encode(MetadataRequest(topics=topics)))

    assert bytes(mend_metadata(version, memoryview(sent))) == sent
