"""The requirements files are the lists in `.ci`, locked."""

import re
from pathlib import Path

import pytest

from tests.tidy.project import ROOT

PIN = re.compile(r"^([A-Za-z0-9_.-]+==[^\s;\\]+)", re.MULTILINE)
NAMES = sorted(path.stem for path in Path(ROOT, ".ci").glob("requirements*.in"))


@pytest.mark.parametrize("name", NAMES)
def test_every_listed_version_is_the_locked_one(name: str) -> None:
    listed = PIN.findall(Path(ROOT, ".ci", f"{name}.in").read_text(encoding="utf-8"))
    locked = PIN.findall(Path(ROOT, f"{name}.txt").read_text(encoding="utf-8"))

    assert listed
    assert set(listed) <= set(locked)


@pytest.mark.parametrize("name", NAMES)
def test_every_locked_package_is_checked_by_hash(name: str) -> None:
    locked = Path(ROOT, f"{name}.txt").read_text(encoding="utf-8")

    packages = re.split(r"^(?=[A-Za-z0-9])", locked, flags=re.MULTILINE)[1:]

    assert packages
    assert [package for package in packages if "--hash=sha256:" not in package] == []


def test_product_and_tests_agree_on_the_packages_they_share() -> None:
    product, tests = (
        dict(pin.split("==") for pin in PIN.findall(Path(ROOT, name).read_text(encoding="utf-8")))
        for name in ("requirements.txt", "requirements-dev.txt")
    )

    assert {name: tests[name] for name in product if name in tests} == {
        name: version for name, version in product.items() if name in tests
    }
