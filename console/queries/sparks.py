"""Draws a sparkline as SVG on the server: attributes only, since the pages' policy bans styles.

A gap stays a gap. The picture is hidden from screen readers, which get its text.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH: Final = 96
HEIGHT: Final = 20
# More than half of the line's width, so that its edges are not cut.
MARGIN: Final = 2
# More points would share pixels.
MAX_POINTS: Final = 96

Sample = float | None


def spark(samples: Sequence[Sample], text: str = "") -> SafeString:
    """Return a picture of samples, oldest first, and the equivalent text."""
    told = _thinned([_value(sample) for sample in samples])
    known = [value for value in told if value is not None]
    if not known:
        return format_html('<span class="spark faint">{}</span>', text or "no samples")
    high, low = max(known), min(known)
    shapes = format_html_join("", "{}", ((_shape(run),) for run in _runs(told, high)))
    said = text or f"between {low:,.4g} and {high:,.4g}, {known[-1]:,.4g} last"
    return format_html(
        '<svg class="spark" width="{0}" height="{1}" viewBox="0 0 {0} {1}" aria-hidden="true"'
        ' focusable="false">{2}</svg><span class="unseen">{3}</span>',
        *(WIDTH, HEIGHT, shapes, said),
    )


def _value(sample: Sample) -> Sample:
    return None if sample is None or not math.isfinite(sample) else max(0.0, sample)


def _thinned(samples: list[Sample]) -> list[Sample]:
    """Return the maximum of each stretch: readers look for peaks in a sparkline."""
    ratio = max(1, -(-len(samples) // MAX_POINTS))
    stretches = (samples[at : at + ratio] for at in range(0, len(samples), ratio))
    return [
        max((value for value in stretch if value is not None), default=None)
        for stretch in stretches
    ]


def _runs(samples: Sequence[Sample], high: float) -> Iterator[list[tuple[float, float]]]:
    """Return the points of each stretch without a gap, in the picture's coordinates."""
    across = (WIDTH - 2 * MARGIN) / max(1, len(samples) - 1)
    up = (HEIGHT - 2 * MARGIN) / (high or 1.0)
    run: list[tuple[float, float]] = []
    for place, value in enumerate((*samples, None)):
        if value is not None:
            run.append((MARGIN + place * across, HEIGHT - MARGIN - value * up))
        elif run:
            yield run
            run = []


def _shape(run: Sequence[tuple[float, float]]) -> SafeString:
    if len(run) == 1:
        return format_html('<circle cx="{}" cy="{}" r="1.5"/>', *map(_written, run[0]))
    return format_html('<polyline points="{}"/>', _points(run))


def _points(run: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{_written(x)},{_written(y)}" for x, y in run)


def _written(number: float) -> str:
    """Round to whole pixels: with a hundred pictures, tenths would be a fifth of the page."""
    return f"{number:.0f}"
