"""What a broker of ours takes and reaches beside a peer, as ratios of one run.

Absolute figures of a shared machine differ from hour to hour; what two brokers show within a few
minutes of each other is comparable.
"""

from bench.measure import Cell, Table


class Ratios:
    """Collects figures of both, row by row; a figure that one of them lacks has no ratio."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._rows: list[tuple[Cell, ...]] = []

    def note(
        self,
        work: str,
        *,
        cpu: tuple[float, float] | None = None,
        rate: tuple[float, float] | None = None,
        p99: tuple[float, float] | None = None,
    ) -> None:
        """Take note of one work: ours, then the peer's."""
        self._rows.append((work, *(_ratio(pair) for pair in (cpu, rate, p99))))

    def table(self) -> Table:
        return Table(
            title=f"Samsa divided by {self._peer}",
            columns=("work", "CPU", "rate", "p99"),
            rows=self._rows,
            notes=("CPU and p99: below 1 is better; rate: above 1 is better",),
        )


def _ratio(pair: tuple[float, float] | None) -> float | None:
    # A peer on another machine has no CPU that is seen here: not a number.
    if pair is None or not pair[1] or pair[1] != pair[1]:
        return None
    return pair[0] / pair[1]
