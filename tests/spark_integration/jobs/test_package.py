"""The package holds all of the room under its own name, and is the same wherever it is built."""

import ast
import base64
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from spark_integration.jobs.package import SOURCES, build_package, own_zip
from tests.tidy.project import ROOT

VERSION = "1.2.3"


def read_zip(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_every_module_of_the_room_is_in_both_files() -> None:
    built = build_package(VERSION)

    modules = read_zip(built.zip)
    expected = {f"pyspark_samsa/{path.relative_to(SOURCES)}" for path in SOURCES.rglob("*.py")}
    assert set(modules) == expected
    assert modules.items() <= read_zip(built.wheel).items()


def test_no_module_imports_anything_of_ours_but_the_package() -> None:
    imported = set()
    for source in read_zip(build_package(VERSION).zip).values():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom):
                assert node.module is not None
                imported.add(node.module)
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}

    assert "pyspark_samsa.source" in imported
    ours = {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()}
    assert {name.partition(".")[0] for name in imported} & ours == set()


def test_the_same_sources_give_the_same_bytes_elsewhere(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in copy.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))

    assert build_package(VERSION, copy) == build_package(VERSION)


def test_the_wheel_says_what_each_of_its_files_has_to_be() -> None:
    built = build_package(VERSION)

    files = read_zip(built.wheel)
    folder = f"pyspark_samsa-{VERSION}.dist-info"
    rows = [row.split(",") for row in files.pop(f"{folder}/RECORD").decode().splitlines()]
    assert built.wheel_name == f"pyspark_samsa-{VERSION}-py3-none-any.whl"
    assert rows.pop() == [f"{folder}/RECORD", "", ""]
    assert {name for name, _, _ in rows} == set(files)
    for name, digest, size in rows:
        found = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).decode()
        assert digest == "sha256=" + found.rstrip("=")
        assert int(size) == len(files[name])


def stand_in(folder: Path, version: str, *, has_sources: bool) -> None:
    """Write as much of a pyspark as the package looks at when it is imported."""
    sql = folder / "pyspark" / "sql"
    sql.mkdir(parents=True)
    (folder / "pyspark" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    (sql / "__init__.py").write_text("")
    (folder / "pyspark" / "cloudpickle.py").write_text(
        "def register_pickle_by_value(module): pass\n"
    )
    (sql / "types.py").write_text("class StructType: pass\n")
    if has_sources:
        (sql / "datasource.py").write_text(
            "class DataSource:\n    def __init__(self, options): self.options = options\n"
            "class DataSourceReader: pass\n"
            "class DataSourceStreamReader: pass\n"
        )


def made_on(tmp_path: Path, version: str, *, has_sources: bool) -> subprocess.CompletedProcess[str]:
    """Make the source out of the zip, on a Spark of some version."""
    stand_in(tmp_path, version, has_sources=has_sources)
    (tmp_path / "pyspark_samsa.zip").write_bytes(build_package(VERSION).zip)
    program = "import pyspark_samsa as p; print(p.__version__, p.DefaultSource({}).name())"
    path = os.pathsep.join([str(tmp_path), str(tmp_path / "pyspark_samsa.zip")])
    return subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_spark_that_is_new_enough_makes_the_source_from_the_zip(tmp_path: Path) -> None:
    done = made_on(tmp_path, "4.2.0", has_sources=True)

    assert done.stdout == f"{VERSION} samsa\n", done.stderr


def test_spark_without_python_data_sources_is_refused(tmp_path: Path) -> None:
    done = made_on(tmp_path, "3.5.6", has_sources=False)

    assert re.search(r"ImportError: this is Spark 3\.5\.6; samsa needs 4\.2 or newer", done.stderr)


def test_spark_without_limited_streams_is_refused(tmp_path: Path) -> None:
    done = made_on(tmp_path, "4.1.2", has_sources=True)

    assert re.search(r"RuntimeError: this is Spark 4\.1\.2; samsa needs 4\.2", done.stderr)


def test_a_session_of_ours_brings_the_room_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "code.zip").write_bytes(own_zip())
    program = "import spark_integration.datasource.wire.messages as m; print(m.__file__)"

    # In a folder, and with a path, where no checkout is.
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "code.zip")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.startswith(str(tmp_path / "code.zip"))
