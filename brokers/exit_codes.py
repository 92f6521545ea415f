"""The exit codes of a broker, which tell its supervisor whether to start it again."""

from typing import Final

STOPPED: Final = 0  # only after a requested stop
FAILED: Final = 1  # with one line in the log that says what to do
MISCONFIGURED: Final = 2
# The disk of its log dir failed. The number is that of EIO.
DISK_FAILED: Final = 5
