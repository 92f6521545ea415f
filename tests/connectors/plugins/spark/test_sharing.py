"""A Spark that has another disk at the path of a table is refused before it writes there."""

from pathlib import Path
from typing import Any

import pytest

from connectors.plugins.spark.sharing import require_shared
from connectors.sdk.errors import ConnectorError
from tests.extras import requires

pytestmark = [requires("java", "spark"), pytest.mark.slow]
WHERE = "sc://spark.example:15002/"


class Elsewhere:
    """A Spark that sees another folder at a path, as one on another machine would."""

    def __init__(self, spark: Any, *, path: Path, seen: Path) -> None:
        self._spark, self._path, self._seen = spark, str(path), str(seen)

    @property
    def read(self) -> "Elsewhere":
        return self

    def text(self, path: str) -> Any:
        return self._spark.read.text(path.replace(self._path, self._seen))

    def range(self, *given: int) -> Any:
        return self._spark.range(*given)


class Blind(Elsewhere):
    """One whose executors write to disks of their own, of which the worker sees nothing."""

    def range(self, *given: int) -> Any:
        del given
        return self

    def selectExpr(self, *given: str) -> "Blind":  # noqa: N802 (Spark's name)
        del given
        return self

    @property
    def write(self) -> Any:
        return Nowhere()


class Nowhere:
    def text(self, path: str) -> None: ...


def test_a_spark_of_the_same_machine_shares_the_folder_and_nothing_is_left(
    spark: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "my lake 100%"

    require_shared(spark, folder, WHERE)

    assert list(folder.iterdir()) == []


def test_a_spark_that_does_not_see_the_folder_is_refused(spark: Any, tmp_path: Path) -> None:
    elsewhere: Any = Elsewhere(spark, path=tmp_path / "here", seen=tmp_path / "there")

    with pytest.raises(ConnectorError, match=r"spark\.example.* cannot read .*/here.*: mount"):
        require_shared(elsewhere, tmp_path / "here", WHERE)

    assert not (tmp_path / "there").exists()


def test_a_spark_whose_files_do_not_arrive_is_refused(spark: Any, tmp_path: Path) -> None:
    blind: Any = Blind(spark, path=tmp_path, seen=tmp_path)

    with pytest.raises(ConnectorError, match=r"of 8 files .* the worker finds 0"):
        require_shared(blind, tmp_path, WHERE)
