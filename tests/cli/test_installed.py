"""A package is whole once its installer has written its last file; half ones are removed."""

from pathlib import Path

import pytest

from cli import installed


def package(site_packages: Path, name: str, *, is_whole: bool = True) -> Path:
    folder = site_packages / f"{name}.dist-info"
    folder.mkdir()
    (folder / "METADATA").touch()
    if is_whole:
        (folder / "INSTALLER").touch()
    return folder


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    file = tmp_path / "requirements.txt"
    file.write_text(
        "Arro3-Core==0.9.1 \\\n    --hash=sha256:02\nnumpy==2.4.6 ; python_version < '3' \\\n"
        "six==1.17.0\n",
        encoding="utf-8",
    )
    return file


def test_spellings_of_a_name_are_alike_and_markers_are_passed_over(
    tmp_path: Path, requirements: Path
) -> None:
    package(tmp_path, "arro3_core-0.9.1")

    assert not installed.has_all(tmp_path, requirements)
    package(tmp_path, "six-1.17.0")

    assert installed.has_all(tmp_path, requirements)


@pytest.mark.parametrize(("version", "is_whole"), [("1.16.0", True), ("1.17.0", False)])
def test_another_version_and_a_half_package_do_not_count(
    tmp_path: Path, requirements: Path, version: str, *, is_whole: bool
) -> None:
    package(tmp_path, "arro3_core-0.9.1")
    package(tmp_path, f"six-{version}", is_whole=is_whole)

    assert not installed.has_all(tmp_path, requirements)


def test_the_metadata_of_half_packages_is_removed(tmp_path: Path) -> None:
    whole = package(tmp_path, "arro3_core-0.9.1")
    half = package(tmp_path, "six-1.17.0", is_whole=False)

    installed.remove_cut_off(tmp_path)

    assert whole.exists()
    assert not half.exists()
