"""Requests that a client in wide use gets wrong in a known way, put right before they are decoded.

The codec refuses bytes that it cannot account for; Kafka ignores what stands behind the last field.
Each row of the table is one client's mistake, and goes when that client's last release with it is
no longer in use.
"""

from collections.abc import Callable, Mapping
from typing import Final

METADATA: Final = 3

# From here on the array of topics begins with a compact length.
_METADATA_FLEXIBLE: Final = 9
# How many flags stand behind the topics: version 11 drops those of the cluster's operations.
_METADATA_FLAGS: Final = {9: 3, 10: 3}
_LATER_METADATA_FLAGS: Final = 2
# What the mistake adds: a null array in the four bytes of the old form, of which one belongs there.
_ADDED: Final = 3


def mend_metadata(version: int, body: memoryview) -> memoryview:
    """Librdkafka before the fix of its issue 5049 asks for all topics in seven bytes, not four.

    Kafka takes the first of the added bytes for the flags, so all of these are false.
    """
    if version < _METADATA_FLEXIBLE or not body or body[0]:
        return body
    proper = 1 + _METADATA_FLAGS.get(version, _LATER_METADATA_FLAGS) + 1
    if len(body) != proper + _ADDED or any(body[: 1 + _ADDED]):
        return body
    return memoryview(bytes(proper))


# API key → what makes its body readable, given the version.
MENDS: Final[Mapping[int, Callable[[int, memoryview], memoryview]]] = {METADATA: mend_metadata}
