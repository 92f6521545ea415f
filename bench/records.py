"""Record batches: what checking, patching, reading, building and packing them costs.

Bare `crc32c` stands beside the checks, because no broker can do less; kafka-python and aiokafka
stand beside reader and builder.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from random import Random

import aiokafka.record.default_records as aiokafka_records

from bench.measure import Cell, Table, best_cpu
from brokers.protocol.records.batch import CHECKED_POSITION, Batch, read_batch
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression, compress, decompress
from brokers.protocol.records.crc32c import crc32c
from brokers.protocol.records.reader import records
from brokers.protocol.records.recompression import Packing, recompressed
from brokers.protocol.records.validation import ProduceRules, check_produced, check_records

with warnings.catch_warnings():
    # kafka-python reads its schemas through a function that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.record.default_records as kafka_python_records

NOW_MS = 1_700_000_000_000
SIZES = {"100 B": 100, "1 KB": 1000, "16 KB": 16_000, "1 MB": 1_000_000}
# As many records of this size as make a batch of a common client's default of 16 KB.
RECORDS = 150
VALUE = b'{"id":%06d,"name":"samsa","words":"%s"}'
RULES = ProduceRules()
MICRO = 1e6
PACKED_BYTES = 65_536
# What a broker recompresses at once, and in a thread.
RECOMPRESSED = {"15 KB": 15_000, "1 MB": 1_000_000}
LIMITS = {"max_unpacked_bytes": 1 << 21, "max_batch_bytes": 1 << 21}

Call = Callable[[], object]


def run() -> Iterator[Table]:
    yield checks()
    yield per_record()
    yield codecs()
    yield recompressions()


def produced(size: int, **fields: int) -> memoryview:
    """Build a batch of one record whose value makes it about `size` bytes."""
    builder = BatchBuilder(**fields)  # type: ignore[arg-type]  # no row gives the codec
    builder.append(None, b"x" * size, timestamp=NOW_MS)
    return memoryview(builder.build())


def check_calls(size: int) -> dict[str, Call]:
    """Return the calls on the path of a produced batch, and the floor beneath them."""
    plain = produced(size)
    idempotent = produced(size, producer_id=7, producer_epoch=0, base_sequence=0)
    batch = read_batch(produced(size))
    return {
        "crc32c": lambda: crc32c(plain[CHECKED_POSITION:]),
        "check_produced": lambda: check_produced(plain, RULES, NOW_MS),
        "idempotent": lambda: check_produced(idempotent, RULES, NOW_MS),
        "patch": lambda: batch.patch(123, 4),
        "stamp": lambda: batch.stamp_log_append_time(NOW_MS),
    }


def checks() -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, size in SIZES.items():
        cost = {call: seconds * MICRO for call, seconds in best_cpu(check_calls(size)).items()}
        rows.append((name, *cost.values()))
    return Table(
        title="A produced batch of one record",
        columns=(
            "value",
            "bare crc32c µs",
            "check_produced µs",
            "idempotent µs",
            "patch µs",
            "LogAppendTime µs",
        ),
        rows=rows,
    )


@cache
def values() -> tuple[bytes, ...]:
    rng = Random(1)
    words = [b"%x" % rng.randrange(16**8) for _ in range(64)]
    return tuple(
        VALUE % (rng.randrange(10**6), b" ".join(rng.choices(words, k=rng.randint(1, 9))))
        for _ in range(RECORDS * 8)
    )


def build_ours(codec: Compression) -> bytearray:
    builder = BatchBuilder(compression=codec)
    for value in values()[:RECORDS]:
        builder.append(b"key", value, (), NOW_MS)
    return builder.build()


def build_theirs(library: object, codec: Compression) -> bytearray:
    builder = library.DefaultRecordBatchBuilder(  # type: ignore[attr-defined]  # two modules alike
        magic=2,
        compression_type=int(codec),
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, value in enumerate(values()[:RECORDS]):
        builder.append(offset, timestamp=NOW_MS, key=b"key", value=value, headers=[])
    built: bytearray = builder.build()
    return built


def exhaust(rows: Iterable[object]) -> None:
    for _ in rows:
        pass


def per_record() -> Table:
    rows: list[tuple[Cell, ...]] = []
    for codec in Compression:
        data = bytes(build_ours(codec))
        batch = read_batch(memoryview(data))
        cost = best_cpu(
            {
                "ours reads": partial(read_ours, batch),
                "kafka-python reads": partial(read_theirs, kafka_python_records, data),
                "aiokafka reads": partial(read_theirs, aiokafka_records, data),
                "deep check": partial(check_records, batch),
                "ours builds": partial(build_ours, codec),
                "kafka-python builds": partial(build_theirs, kafka_python_records, codec),
                "aiokafka builds": partial(build_theirs, aiokafka_records, codec),
            }
        )
        rows.append((codec.name.lower(), *(seconds * MICRO / RECORDS for seconds in cost.values())))
    return Table(
        title=f"Per record, batches of {RECORDS}",
        columns=(
            "codec",
            "read µs",
            "kafka-python µs",
            "aiokafka µs",
            "check_records µs",
            "build µs",
            "kafka-python µs",
            "aiokafka µs",
        ),
        rows=rows,
        notes=("aiokafka's reader and builder are compiled C.",),
    )


def read_ours(batch: Batch) -> None:
    exhaust(records(batch, max_bytes=1 << 20))


def read_theirs(library: object, data: bytes) -> None:
    exhaust(library.DefaultRecordBatch(data))  # type: ignore[attr-defined]  # two modules alike


def codecs() -> Table:
    data = b"".join(values())[:PACKED_BYTES]
    rows: list[tuple[Cell, ...]] = []
    for codec in list(Compression)[1:]:
        packed = compress(codec, data)
        cost = best_cpu(
            {
                "pack": partial(compress, codec, data),
                "unpack": partial(decompress, codec, packed, max_bytes=len(data)),
            }
        )
        rows.append(
            (
                codec.name.lower(),
                len(data) / len(packed),
                *(len(data) / seconds / 1e9 for seconds in cost.values()),
            )
        )
    return Table(
        title=f"Packing {PACKED_BYTES // 1024} KiB of JSON at the default level",
        columns=("codec", "ratio", "pack GB/s", "unpack GB/s"),
        rows=rows,
    )


def recompressions() -> Table:
    """What a leader does to a batch whose codec is not its topic's."""
    rows: list[tuple[Cell, ...]] = []
    for name, size in RECOMPRESSED.items():
        plain = json_batch(size)
        packed = recompressed(plain, Packing(codec=Compression.LZ4), **LIMITS)
        for codec in list(Compression)[1:]:
            packing = Packing(codec=codec)
            sources = (
                {"none": plain, "lz4": packed} if codec is not Compression.LZ4 else {"none": plain}
            )
            cost = best_cpu(
                {
                    source: partial(recompressed, batch, packing, **LIMITS)
                    for source, batch in sources.items()
                }
            )
            figures = (
                figure
                for source in ("none", "lz4")
                for figure in (
                    (cost[source] * MICRO, len(plain) / cost[source] / 1e6)
                    if source in cost
                    else (None, None)
                )
            )
            rows.append((name, codec.name.lower(), *figures))
    return Table(
        title="Recompression of a batch of JSON for compression.type, by its unpacked size",
        columns=("batch", "to", "uncompressed: µs", "MB/s", "lz4: µs", "MB/s"),
        rows=rows,
    )


def json_batch(size: int) -> memoryview:
    """Build a batch of records with words that do not repeat, which a codec makes half as large."""
    builder, rng = BatchBuilder(), Random(2)
    while builder.size < size:
        words = b" ".join(b"%x" % rng.randrange(16**4) for _ in range(40))
        builder.append(b"key", VALUE % (builder.record_count, words), (), NOW_MS)
    return memoryview(builder.build())
