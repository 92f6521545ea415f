"""What the table of groups asks of a client, in words that are the same for all of them.

As in clients/admin.py: a door has a method for each call that its client has, values come back
plain, and a refusal is `Refused`.
"""

from collections.abc import Callable
from typing import Any

from tests.interop.clients.admin import Door

# Names of the calls; the arguments are those of JavaGroups.
CALLS = (
    "list_groups",
    "describe_group",
    "delete_groups",
    "list_offsets",
    "alter_offsets",
    "delete_offsets",
    "remove_static",
    "remove_all",
    "features",
)

# What a client tells of a group: state, type, protocol (of its members), assignor, members.
Told = dict[str, Any]
Opened = Callable[[str], Door]
# The states by the wire's names, as Java and librdkafka write them.
STATE_WORDS = {
    "Empty": "EMPTY",
    "Stable": "STABLE",
    "PreparingRebalance": "PREPARING_REBALANCING",
    "CompletingRebalance": "COMPLETING_REBALANCING",
    "Dead": "DEAD",
}
