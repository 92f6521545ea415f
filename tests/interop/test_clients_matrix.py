"""Every client reads what every other wrote: writer × codec × idempotence × reader.

One hash over partition, offset, timestamp, key, value and headers of all that was read must be the
same for every reader, and that of what went in. Each topic is written once and read by all.
"""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient

from brokers.protocol.records.compression import Compression
from tests.extras import missing, requires
from tests.interop.clients.client import Reader, Writer
from tests.interop.clients.records import (
    PARTITIONS,
    Trait,
    difference,
    digest,
    large_records,
    rows_expected,
    small_records,
)
from tests.interop.clients.table import READERS, WRITERS
from tests.interop.clients.target import KAFKA, SAMSA, Start
from tests.oracles.confluent_client import QUIET, create_topic
from tests.scale import IS_LONG, count

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

# Each shape in each partition at least: at the desk that is about all.
SMALL_RECORDS = count(600, 10_000)
LARGE_RECORDS = count(4, 20)
# The records are old, and shall stay.
TOPIC_CONFIG = {"retention.ms": "-1"}
# Partitions on several brokers, so that clients have to find their leaders.
BROKERS = 3


# Apache Kafka runs the same matrix when there is time: it shows that the test asks nothing odd.
@pytest.fixture(scope="module", params=[SAMSA, KAFKA] if IS_LONG else [SAMSA])
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    start: Start = request.param
    with start(tmp_path_factory.mktemp("matrix"), BROKERS) as address:
        yield address


@pytest.mark.parametrize("codec", Compression, ids=lambda codec: codec.name.lower())
@pytest.mark.parametrize(
    "writer",
    [pytest.param(each, id=each.name, marks=requires(*each.needs)) for each in WRITERS],
)
def test_all_clients_read_the_same_of_what_one_wrote(
    bootstrap: str, writer: Writer, codec: Compression
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    sent = [
        *small_records(SMALL_RECORDS, without=writer.cannot_write),
        *large_records(LARGE_RECORDS),
    ]
    expected = rows_expected(sent)
    has_times = Trait.OWN_TIMESTAMP not in writer.cannot_write

    for is_idempotent in (False, True):
        topic = f"{writer.name}-{codec.name.lower()}-{'idempotent' if is_idempotent else 'plain'}"
        create_topic(admin, topic, len(PARTITIONS), TOPIC_CONFIG)

        writer.write(bootstrap, topic, sent, codec, idempotent=is_idempotent)

        digests = {}
        for reader in readers_here():
            rows = reader.read(bootstrap, topic, PARTITIONS)
            digests[reader.name] = digest(rows)
            content = digest(rows, with_timestamps=has_times)
            wanted = digest(expected, with_timestamps=has_times)
            assert content == wanted, f"{topic}, {reader.name}: {difference(expected, rows)}"
        assert len(set(digests.values())) == 1, f"{topic}: {digests}"


def readers_here() -> list[Reader]:
    return [each for each in READERS if not any(missing(name) for name in each.needs)]


@pytest.mark.parametrize(
    "reader",
    [pytest.param(each, id=each.name, marks=requires(*each.needs)) for each in READERS],
)
def test_no_reader_is_missing_from_the_matrix(reader: Reader) -> None:
    """Skips with the reason for a client that is not installed, so that a hole is seen."""
    assert reader in readers_here()


def test_what_a_client_cannot_send_is_listed_with_its_reason(
    report: Callable[[str], None],
) -> None:
    lines = [
        f"{writer.name:16} cannot send {trait.name.lower()}: {reason}"
        for writer in WRITERS
        for trait, reason in writer.cannot_write.items()
    ]

    report("\n".join(lines))
    # Some client sends each of them, so nothing is left out for all.
    for trait in Trait:
        assert any(trait not in writer.cannot_write for writer in WRITERS), trait
