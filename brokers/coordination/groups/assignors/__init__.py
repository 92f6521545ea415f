"""The ways to spread partitions over members that clients can ask for, by Kafka's names.

Pure functions from what is and who asks for what to what should be; they know no group.
"""

from collections.abc import Mapping
from typing import Final

from brokers.coordination.groups.assignors import range as by_range
from brokers.coordination.groups.assignors import uniform
from brokers.coordination.groups.assignors.spec import Assign

# The first is taken where no member asks for one.
ASSIGNORS: Final[Mapping[str, Assign]] = {"uniform": uniform.assign, "range": by_range.assign}
