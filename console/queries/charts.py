"""Defines a chart as a page places it. Its script fetches the samples from /series."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The attributes of `console/chart.html`; the kinds and metrics are those of `series`."""

    id: str  # of the element, which survives a refresh of the page by it
    title: str
    cluster_id: str
    kind: str
    metrics: tuple[str, ...]
    unit: str  # bytes, bytes/s, ms, s, %, or a word that follows the number
    name: str = ""
    topic: str = ""  # of a group's pair; `name` is the group
    labels: tuple[str, ...] = ()  # of the lines, if the metric names do not read well
    range_s: int = 3_600
    limit: float | None = None  # draws a dashed line
    limit_label: str = "limit"

    @property
    def metric(self) -> str:
        return ",".join(self.metrics)

    @property
    def label(self) -> str:
        return ",".join(self.labels)
