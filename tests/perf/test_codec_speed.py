"""The codec beside kafka-python's: the ratios the design promises, with room for a busy machine.

The bench prints the figures; this test only notices when a change has cost the codec its lead, so
it grants twice what the bench's own targets say.
"""

from collections.abc import Callable

import pytest

from bench import codec
from bench.measure import geometric_mean

ROOM = 2.0
ROUNDS = 3
# Half a thousand calls of the slowest contender; the bench takes longer rounds for its figures.
ROUND_SECONDS = 0.015

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def figures() -> list[codec.Figures]:
    return [
        codec.measure(case, rounds=ROUNDS, round_seconds=ROUND_SECONDS) for case in codec.cases()
    ]


def test_encoding_keeps_its_lead_over_kafka_python(
    figures: list[codec.Figures], report: Callable[[str], None]
) -> None:
    ratios = {figure.case.name: figure.encode_ratio for figure in figures}
    mean = geometric_mean(list(ratios.values()))
    report(shown("encode", ratios) + f"\ngeometric mean {mean:.3f}")

    assert max(ratios.values()) <= codec.ENCODE_LIMIT * ROOM
    assert mean <= codec.ENCODE_MEAN_LIMIT * ROOM


def test_decoding_keeps_up_with_kafka_python(
    figures: list[codec.Figures], report: Callable[[str], None]
) -> None:
    ratios = {figure.case.name: figure.decode_ratio for figure in figures}
    mean = sum(ratios.values()) / len(ratios)
    report(shown("decode", ratios) + f"\nmean {mean:.3f}")

    assert max(ratios.values()) <= codec.DECODE_LIMIT * ROOM
    assert mean <= codec.DECODE_MEAN_LIMIT * ROOM


def shown(direction: str, ratios: dict[str, float]) -> str:
    rows = [f"  {name:40} {ratio:.3f}" for name, ratio in ratios.items()]
    return "\n".join([f"{direction}: our CPU time as a share of kafka-python's", *rows])
