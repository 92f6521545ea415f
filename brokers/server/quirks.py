"""Repairs requests that widely used clients encode wrongly in a known way, before decoding.

The codec refuses unknown bytes; Kafka ignores bytes after the last field. Each row of the table is
one client's bug, and can be removed when that client's last release with it is no longer in use.
"""

from collections.abc import Callable, Mapping
from typing import Final

METADATA: Final = 3

# From this version on the array of topics has a compact length.
_METADATA_FLEXIBLE: Final = 9
# The number of flags after the topics: version 11 drops those of the cluster's operations.
_METADATA_FLAGS: Final = {9: 3, 10: 3}
_LATER_METADATA_FLAGS: Final = 2
# The wrong bytes: a null array in the four bytes of the old format, where one byte belongs.
_ADDED: Final = 3


def mend_metadata(version: int, body: memoryview) -> memoryview:
    """Repair librdkafka without the fix of its issue 5049: all topics in seven bytes, not four.

    Kafka reads the first of the extra bytes as the flags, so all of these are false.
    """
    if version < _METADATA_FLEXIBLE or not body or body[0]:
        return body
    proper = 1 + _METADATA_FLAGS.get(version, _LATER_METADATA_FLAGS) + 1
    if len(body) != proper + _ADDED or any(body[: 1 + _ADDED]):
        return body
    return memoryview(bytes(proper))


# API key → the function that repairs its body, given the version.
MENDS: Final[Mapping[int, Callable[[int, memoryview], memoryview]]] = {METADATA: mend_metadata}
