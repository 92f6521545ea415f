"""Writes the log of a process with Django to stderr: each line with its time, in UTC.

The times have the form of those in the logs of brokers and of Spark, so that lines of several
processes can be put in order.
"""

import logging
import time
from typing import Final

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"


class Lines(logging.Formatter):
    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"


def begin(level: int) -> None:
    """Write what every logger of this process has to say, from a level on."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines(FORMAT))
    logging.basicConfig(handlers=[handler], level=level, force=True)
