"""The requirements files are the lists in `.ci`, locked."""

import re
from pathlib import Path

import pytest

from tests.tidy.project import ROOT

PIN = re.compile(r"^([A-Za-z0-9_.-]+==[^\s;\\]+)", re.MULTILINE)
INCLUDED = re.compile(r"^-r (\S+)$", re.MULTILINE)
NAMES = sorted(path.stem for path in Path(ROOT, ".ci").glob("requirements*.in"))


def read_list(name: str) -> str:
    """Return a list with those that it includes."""
    text = Path(ROOT, ".ci", name).read_text(encoding="utf-8")
    return text + "".join(read_list(included) for included in INCLUDED.findall(text))


@pytest.mark.parametrize("name", NAMES)
def test_every_listed_version_is_the_locked_one(name: str) -> None:
    listed = PIN.findall(read_list(f"{name}.in"))
    locked = PIN.findall(Path(ROOT, f"{name}.txt").read_text(encoding="utf-8"))

    assert listed
    assert set(listed) <= set(locked)


@pytest.mark.parametrize("name", NAMES)
def test_every_locked_package_is_checked_by_hash(name: str) -> None:
    locked = Path(ROOT, f"{name}.txt").read_text(encoding="utf-8")

    packages = re.split(r"^(?=[A-Za-z0-9])", locked, flags=re.MULTILINE)[1:]

    assert packages
    assert [package for package in packages if "--hash=sha256:" not in package] == []


@pytest.mark.parametrize("name", [name for name in NAMES if name != "requirements"])
def test_every_file_agrees_with_the_product_on_the_packages_they_share(name: str) -> None:
    whole, part = (
        # A package may have a line for each Python.
        set(PIN.findall(Path(ROOT, f"{file}.txt").read_text(encoding="utf-8")))
        for file in ("requirements", name)
    )
    names = {pin.partition("==")[0] for pin in whole}

    assert {pin for pin in part if pin.partition("==")[0] in names} <= whole
