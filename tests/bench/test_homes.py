"""What a home's log tells of its last start."""

from pathlib import Path

import pytest

from bench.homes import found_clean


@pytest.mark.parametrize(
    ("starts", "is_clean"),
    [(["false"], False), (["false", "true"], True), (["true", "false"], False)],
)
def test_the_last_start_counts(tmp_path: Path, starts: list[str], *, is_clean: bool) -> None:
    lines = [
        line
        for start in starts
        for line in (
            '{"event": "listener.opened"}',
            f'{{"event": "logs.loaded", "logs": 3, "was_clean": {start}, "seconds": 0.1}}',
        )
    ]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "broker-1.log").write_text("\n".join(lines), encoding="utf-8")

    assert found_clean(tmp_path) is is_clean
