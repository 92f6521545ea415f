"""Every client reads what every other wrote: writer × codec × idempotence × reader.

One hash over partition, offset, timestamp, key, value and headers of all that was read must be the
same for every reader, and that of what went in. Each topic is written once and read by all. A
writer is idempotent with every second codec, and with the others not. With PostgreSQL an outage
happens in the middle of every test, and each writer brings one codec, in both ways. A long run
writes more records, in both ways with all codecs, and also to PostgreSQL without outages and to
Kafka.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle

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
from tests.interop.clients.target import KAFKA, ON_POSTGRES, SHARED_SAMSA, Kind, Target
from tests.interop.homes import BROKERS
from tests.oracles.confluent_client import QUIET, SECONDS, create_topic
from tests.scale import IS_LONG, count

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

# Each shape in each partition at least: of 600 that is about all.
SMALL_RECORDS = count(600, 600, long=10_000)
LARGE_RECORDS = count(4, 4, long=20)
# The records are old, and shall stay.
TOPIC_CONFIG = {"retention.ms": "-1"}

# Apache Kafka runs the same matrix when there is time: it shows that the test asks nothing odd.
KINDS = (SHARED_SAMSA, KAFKA) if IS_LONG else (SHARED_SAMSA,)
CODECS = tuple(Compression)
# Whatever keeps the metadata, a broker treats all codecs alike: each writer brings another one.
PAIRS = tuple((writer, codec) for writer in WRITERS for codec in CODECS)
# The header of a batch has its producer and its codec: with each codec, three writers are
# idempotent and three are not, and each writer is both.
WAYS = (False, True)
NAMES = {False: "plain", True: "idempotent"}
WAY_OF_PAIR = {pair: number % 2 == 1 for number, pair in enumerate(PAIRS)}
PAIRS_ON_POSTGRES = PAIRS if IS_LONG else tuple(zip(WRITERS, cycle(CODECS), strict=False))


@pytest.fixture(scope="module")
def target(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    kind: Kind = request.param
    with kind.start(tmp_path_factory.mktemp("matrix"), BROKERS) as running:
        yield running


def each_of(kinds: Iterable[Kind]) -> pytest.MarkDecorator:
    rows = [pytest.param(kind, id=kind.name, marks=kind.marks) for kind in kinds]
    return pytest.mark.parametrize("target", rows, indirect=True)


def each_pair(pairs: Iterable[tuple[Writer, Compression]]) -> pytest.MarkDecorator:
    rows = [
        pytest.param(
            writer, codec, id=f"{writer.name}-{codec.name.lower()}", marks=requires(*writer.needs)
        )
        for writer, codec in pairs
    ]
    return pytest.mark.parametrize(("writer", "codec"), rows)


@each_pair(PAIRS)
@each_of(KINDS)
def test_all_clients_read_the_same_of_what_one_wrote(
    target: Target, writer: Writer, codec: Compression
) -> None:
    play(target, writer, codec, WAYS if IS_LONG else (WAY_OF_PAIR[writer, codec],))


@each_pair(PAIRS_ON_POSTGRES)
@each_of(ON_POSTGRES)
def test_they_do_so_with_postgres_and_while_it_is_away(
    target: Target, writer: Writer, codec: Compression
) -> None:
    play(target, writer, codec, WAYS)


def play(target: Target, writer: Writer, codec: Compression, ways: Sequence[bool]) -> None:
    """Let a client write, all read, and an outage begin and end meanwhile, where there is one."""
    admin = AdminClient({"bootstrap.servers": target.bootstrap, **QUIET})
    topics = {way: f"{writer.name}-{codec.name.lower()}-{NAMES[way]}" for way in ways}
    for topic in topics.values():
        create_topic(admin, topic, len(PARTITIONS), TOPIC_CONFIG)

    with target.outage() as end:
        for is_idempotent, topic in topics.items():
            if is_idempotent:
                # A new one may need the agent, for a block of ids; so it comes when that does.
                end()
            check(target.bootstrap, topic, writer, codec, is_idempotent=is_idempotent)

    # Shows also that admin calls work after an outage, and keeps a run from filling a small disk.
    for deleted in admin.delete_topics([*topics.values()]).values():
        deleted.result(SECONDS)


def check(
    bootstrap: str, topic: str, writer: Writer, codec: Compression, *, is_idempotent: bool
) -> None:
    """Write a topic, and compare what each reader finds in it with what went in."""
    sent = [
        *small_records(SMALL_RECORDS, without=writer.cannot_write),
        *large_records(LARGE_RECORDS),
    ]
    expected = rows_expected(sent)
    has_times = Trait.OWN_TIMESTAMP not in writer.cannot_write

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
