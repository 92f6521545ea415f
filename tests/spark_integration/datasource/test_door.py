"""The source goes where its package is not, and brings it."""

import subprocess
import sys
from pathlib import Path

import pytest

from spark_integration.jobs.package import build_package
from tests.extras import requires

pytestmark = pytest.mark.slow

PICKLED = """\
import sys
from pyspark import cloudpickle
from pyspark_samsa import DefaultSource
sys.stdout.buffer.write(cloudpickle.dumps(DefaultSource({"includeHeaders": "true"})))
"""
# As Spark does it with what it was handed.
LOADED = """\
import sys
from importlib.util import find_spec
from pyspark import cloudpickle
assert find_spec("pyspark_samsa") is None
source = cloudpickle.loads(sys.stdin.buffer.read())
again = cloudpickle.loads(cloudpickle.dumps(source))
print(source.name(), "headers" in again.schema())
"""


@requires("spark")
def test_a_python_that_has_no_package_reads_it_out_of_the_pickle(tmp_path: Path) -> None:
    archive = tmp_path / "pyspark_samsa.zip"
    archive.write_bytes(build_package("1.2.3").zip)

    pickled = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append({str(archive)!r})\n{PICKLED}"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=tmp_path,
        input=pickled.stdout,
        capture_output=True,
        check=True,
    )

    assert loaded.stdout.decode() == "samsa True\n"


@requires("spark")
def test_stream_that_cannot_begin_raises_its_own_error_where_spark_shows_it() -> None:
    from pyspark.sql.types import StructType  # noqa: PLC0415 - an extra

    from spark_integration.datasource.door import DefaultSource  # noqa: PLC0415
    from spark_integration.datasource.errors import OptionRefused  # noqa: PLC0415

    reader = DefaultSource({"subscribe": "t"}).streamReader(StructType([]))

    for ask in (reader.initialOffset, reader.latestOffset, lambda: reader.partitions({}, {})):
        with pytest.raises(OptionRefused, match="a schema was given"):
            ask()
