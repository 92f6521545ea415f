"""`python -m brokers.server` is one broker."""

import sys

from brokers.server.daemon import main

if __name__ == "__main__":
    sys.exit(main())
