"""Runs one broker: `python -m brokers.server`."""

import sys

from brokers.server.daemon import main

if __name__ == "__main__":
    sys.exit(main())
