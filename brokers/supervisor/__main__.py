"""Runs the supervisor for `./samsa up` and `./samsa node`: `python -m brokers.supervisor`."""

import asyncio
import os
import sys
from collections.abc import Sequence

from brokers.clock import SystemClock
from brokers.supervisor.components import table
from brokers.supervisor.daemon import Supervisor, Table
from brokers.supervisor.errors import StartRefused
from brokers.supervisor.front import Front, Terminal, Waiting
from brokers.supervisor.home import Home
from brokers.supervisor.options import Options, parse


async def supervise(options: Options, components: Table) -> None:
    home = Home(options.home)
    front: Front = Terminal()
    if options.is_detached:
        front = Waiting(home.log_file("supervisor"))
    supervisor = Supervisor(
        options, clock=SystemClock(), front=front, home=home, components=components
    )
    await supervisor.run()


def main(arguments: Sequence[str], components: Table = table) -> int:
    # All processes of a home write for its owner only, even if the folder is open to others.
    os.umask(0o077)
    try:
        asyncio.run(supervise(parse(arguments), components))
    except StartRefused as refused:
        sys.stderr.write(f"samsa: {refused}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
