"""Maven is asked once, and either answer is remembered."""

import os
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cli.installer import InstallError
from tests.suite.maven import RETRY_AFTER_SECONDS, KafkaJars, bare_project

# Writes one jar where it is told to, and notes that it was asked.
WORKS = """#!/bin/sh
echo asked >> "$0.log"
for argument; do
    case $argument in -DoutputDirectory=*) folder=${argument#*=} ;; esac
done
mkdir "$folder" && echo jar > "$folder/kafka.jar"
"""
FAILS = r"""#!/bin/sh
echo asked >> "$0.log"
printf '\033[0m[ERROR] \n'
echo '[ERROR] the registry does not answer'
exit 1
"""


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KafkaJars:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return KafkaJars(tmp_path / "venv" / "kafka")


def maven(folder: Path, script: str) -> None:
    program = folder / "mvn"
    program.write_text(script, encoding="utf-8")
    program.chmod(0o755)


def times_asked(folder: Path) -> int:
    return len((folder / "mvn.log").read_text(encoding="utf-8").splitlines())


def test_what_maven_brings_is_kept_and_not_asked_for_again(jars: KafkaJars, tmp_path: Path) -> None:
    maven(tmp_path, WORKS)

    jars.ensure()
    jars.ensure()

    assert jars.is_here()
    assert [jar.name for jar in jars.folder.iterdir()] == ["kafka.jar"]
    assert times_asked(tmp_path) == 1


def test_a_failure_is_remembered_for_a_day_and_leaves_nothing_else(
    jars: KafkaJars, tmp_path: Path
) -> None:
    maven(tmp_path, FAILS)

    with pytest.raises(InstallError, match="mvn failed: the registry does not answer"):
        jars.ensure()
    with pytest.raises(InstallError, match=r"delete .* to try again"):
        jars.ensure()

    assert not jars.is_here()
    assert [path.name for path in jars.folder.parent.iterdir()] == ["kafka.failed"]
    assert times_asked(tmp_path) == 1


def test_a_day_after_a_failure_maven_is_asked_again(jars: KafkaJars, tmp_path: Path) -> None:
    maven(tmp_path, FAILS)
    with pytest.raises(InstallError):
        jars.ensure()
    yesterday = time.time() - RETRY_AFTER_SECONDS - 1
    os.utime(jars.folder.parent / "kafka.failed", (yesterday, yesterday))

    maven(tmp_path, WORKS)
    jars.ensure()

    assert jars.is_here()


def test_without_maven_nothing_is_tried(
    jars: KafkaJars, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(InstallError, match="mvn is not installed"):
        jars.ensure()

    assert not jars.folder.parent.exists()


def test_a_bare_project_needs_its_jars_and_nothing_that_these_need() -> None:
    text = bare_project([("org.one", "a", "1.0"), ("org.two", "b", "2.0")])

    found = ElementTree.fromstring(text).findall(  # noqa: S314 (our own)
        ".//{*}dependencies/{*}dependency"
    )
    assert [
        [row.findtext(f"{{*}}{part}") for part in ("groupId", "artifactId", "version")]
        for row in found
    ] == [["org.one", "a", "1.0"], ["org.two", "b", "2.0"]]
    assert all(row.findtext(".//{*}exclusion/{*}groupId") == "*" for row in found)
