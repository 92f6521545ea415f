"""A chart as a page places it: what it is about. Its script asks /series for the samples."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The attributes of `console/chart.html`; the kinds and metrics are those of `series`."""

    id: str  # of the element, so that it survives when the page renews itself
    title: str
    cluster_id: str
    kind: str
    metrics: tuple[str, ...]
    unit: str  # bytes, bytes/s, ms, s, %, or a word that follows the number
    name: str = ""
    topic: str = ""  # of a pair, whose name is the group's
    labels: tuple[str, ...] = ()  # of the lines, where the names of the metrics are no words
    range_s: int = 3_600
    limit: float | None = None  # a dashed line
    limit_label: str = "limit"

    @property
    def metric(self) -> str:
        return ",".join(self.metrics)

    @property
    def label(self) -> str:
        return ",".join(self.labels)
