"""The machine's Java is used if it is new enough, otherwise that of the extra, by a wrapper."""

import os
import subprocess
from pathlib import Path

import pytest

from spark_integration.jobs import java
from spark_integration.jobs.errors import SparkMissing
from spark_integration.jobs.java import DOOR, ask, machine_java, make_door, prepare_java

# Prints the version of a Java, to the stream to which a Java prints it.
STAND_IN = """\
#!/bin/sh
cat >&2 <<END
Property settings:
    java.home = {home}
    java.specification.version = {version}
END
"""


def install_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(STAND_IN.format(home=home, version=version), encoding="utf-8")
    program.chmod(0o755)
    return home


def path_of(*homes: Path) -> str:
    return ":".join([*(str(home / "bin") for home in homes), "/bin", "/usr/bin"])


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    first = install_java(tmp_path / "first", "21")
    second = install_java(tmp_path / "second", "17")

    found = machine_java({"JAVA_HOME": str(first), "PATH": path_of(second)})

    assert found is not None
    assert (found.home, found.version, found.origin) == (first, 21, "JAVA_HOME")


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = install_java(tmp_path / "old", "1.8")
    new = install_java(tmp_path / "new", "17")

    found = machine_java({"JAVA_HOME": str(old), "PATH": path_of(new)})

    assert found is not None
    assert found.home == new
    assert machine_java({"PATH": f"{old}/bin"}) is None


def test_a_link_on_the_path_leads_to_the_home_of_its_java(tmp_path: Path) -> None:
    real = install_java(tmp_path / "real", "17")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(real / "bin" / "java")

    found = machine_java({"PATH": f"{tmp_path}/links:/bin:/usr/bin"})

    assert found is not None
    assert found.home == real


def test_program_that_does_not_answer_as_java_is_ignored(tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    silent.chmod(0o755)

    assert ask(silent, origin="here") is None
    assert ask(tmp_path / "nowhere", origin="here") is None


def test_without_any_java_the_advice_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "extra_runtime", lambda: None)

    with pytest.raises(SparkMissing, match=r"\./samsa extras install java"):
        prepare_java(tmp_path, {"PATH": str(tmp_path)})


def test_the_java_of_the_extra_gets_a_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = install_java(tmp_path / "runtime", "21")
    monkeypatch.setattr(java, "extra_runtime", lambda: runtime)

    found = prepare_java(tmp_path / "door", {"PATH": str(tmp_path)})

    assert (found.home, found.version) == (tmp_path / "door", 21)
    assert os.access(found.home / "bin" / "java", os.X_OK)


def test_the_door_drops_one_argument_and_keeps_the_others_as_they_are(tmp_path: Path) -> None:
    program = tmp_path / "a java's"
    program.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n", encoding="utf-8")
    program.chmod(0o755)

    make_door(tmp_path / "door", program)
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "--add-modules=x", "*"]
    said = subprocess.run(
        [tmp_path / "door" / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    ).stdout

    assert said == "<-Da=b c><><--add-modules=x><*>"


def test_a_door_is_written_again_only_where_it_leads_elsewhere(tmp_path: Path) -> None:
    door = tmp_path / "bin" / "java"
    make_door(tmp_path, Path("/one/java"))
    before = door.stat().st_ino

    make_door(tmp_path, Path("/one/java"))
    assert door.stat().st_ino == before
    make_door(tmp_path, Path("/two/java"))

    assert door.read_text(encoding="utf-8") == DOOR.format(java="/two/java")
    assert os.listdir(tmp_path / "bin") == ["java"]
