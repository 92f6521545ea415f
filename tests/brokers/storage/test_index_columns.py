"""The entries of index files: big-endian on disk, two native columns in memory."""

import random
import struct
from array import array

import pytest

from brokers.storage import offset_index, time_index
from brokers.storage.index_columns import Layout


@pytest.mark.parametrize(
    ("layout", "format_", "largest_key"),
    [(offset_index.LAYOUT, ">II", 2**32 - 1), (time_index.LAYOUT, ">qI", 2**63 - 1)],
)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 300])
def test_entries_are_big_endian_pairs(
    layout: Layout, format_: str, largest_key: int, count: int
) -> None:
    rng = random.Random(count)
    keys = [rng.randint(0, largest_key) for _ in range(count)]
    values = [rng.randint(0, 2**32 - 1) for _ in range(count)]
    content = b"".join(map(struct.Struct(format_).pack, keys, values))

    encoded = layout.encode((array(layout.key, keys), array("I", values)))

    assert layout.entry_size == struct.calcsize(format_)
    assert encoded.tobytes() == content
    assert list(map(list, layout.decode(content))) == [keys, values]
