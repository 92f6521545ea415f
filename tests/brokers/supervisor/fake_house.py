"""A supervisor whose components are fakes; as a program, for tests that kill it.

`python -m tests.brokers.supervisor.fake_house SPEC… -- OPTIONS`: a SPEC is `name=mode+mode`, and
OPTIONS are those of `python -m brokers.supervisor`.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from brokers.supervisor.__main__ import main
from brokers.supervisor.components import Component, Doors, Gate, table
from brokers.supervisor.home import Home
from brokers.supervisor.options import Options

PROGRAM = Path(__file__).with_name("fake_component.py")


class Fakes:
    """The product's table, with the fake program in place of every command."""

    def __init__(
        self, modes: Mapping[str, str], stop_seconds: float = 5, ready_seconds: float = 30
    ) -> None:
        self._modes = modes
        self._ready_seconds = ready_seconds
        self._stop_seconds = stop_seconds

    def __call__(self, options: Options, home: Home, doors: Doors) -> Sequence[Component]:
        return [self.fake(row) for row in table(options, home, doors)]

    def fake(self, row: Component) -> Component:
        modes = self._modes.get(row.name, "").split("+")
        if row.gate in {Gate.HTTP, Gate.PING}:
            modes += ["http", str(row.socket)]
        elif row.socket is not None:
            modes += ["beside", str(row.socket)]
        limits = replace(row.limits, stop=self._stop_seconds, ready=self._ready_seconds)
        return replace(
            row, command=(sys.executable, str(PROGRAM), *filter(None, modes)), limits=limits
        )


if __name__ == "__main__":
    border = sys.argv.index("--")
    modes = dict(spec.split("=") for spec in sys.argv[1:border])
    sys.exit(main(sys.argv[border + 1 :], Fakes(modes)))
