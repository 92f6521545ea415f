"""The assignors that clients can select, by Kafka's names.

Pure functions from members, subscriptions and current shares to new shares; they know no group.
"""

from collections.abc import Mapping
from typing import Final

from brokers.coordination.groups.assignors import range as by_range
from brokers.coordination.groups.assignors import uniform
from brokers.coordination.groups.assignors.spec import Assign

# The first is the default if no member requests one.
ASSIGNORS: Final[Mapping[str, Assign]] = {"uniform": uniform.assign, "range": by_range.assign}
