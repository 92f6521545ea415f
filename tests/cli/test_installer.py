"""Packages come by uv where it works and by pip where it does not, and the user sees it."""

import sys
from pathlib import Path

import pytest

from cli.installer import Progress, find_links, pip_of, pip_settings, uv_settings


def test_settings_of_pip_are_translated_for_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("SSL_CERT_FILE", "UV_DEFAULT_INDEX", "UV_HTTP_TIMEOUT"):
        monkeypatch.delenv(variable, raising=False)

    translated = uv_settings({"cert": "ca.pem", "index-url": "mirror", "retries": "3"})

    assert translated == {"SSL_CERT_FILE": "ca.pem", "UV_DEFAULT_INDEX": "mirror"}


def test_what_the_user_told_uv_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "chosen")

    assert uv_settings({"index-url": "mirror"}) == {}


def test_places_that_are_missing_are_not_passed_on(tmp_path: Path) -> None:
    wheels = {"find-links": f"{tmp_path} {tmp_path}/missing https://wheels.example/"}

    assert find_links(wheels) == [
        "--find-links",
        str(tmp_path),
        "--find-links",
        "https://wheels.example/",
    ]
    assert find_links({}) == []


@pytest.mark.slow
def test_settings_are_read_from_all_levels_of_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\ncert = from-file\nindex-url = mirror\n", encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("PIP_CERT", "from-variable")

    settings = pip_settings(Path(sys.executable))

    assert settings["cert"] == "from-variable"
    assert settings["index-url"] == "mirror"


def run(program: str, capsys: pytest.CaptureFixture[str]) -> tuple[bool, str]:
    succeeded = Progress("two packages").run([sys.executable, "-c", program], {})
    return succeeded, capsys.readouterr().err


def test_downloads_are_shown_with_name_size_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    succeeded, shown = run("print('Downloading ruff (10.6MiB)')", capsys)

    assert succeeded
    assert "two packages: downloading ruff (10.6MiB) [0 s]" in shown
    assert "two packages: installed" in shown


def test_a_package_that_is_built_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    succeeded, shown = run("print('   Building pyspark==4.3.0')", capsys)

    assert succeeded
    assert "two packages: building pyspark==4.3.0 [0 s]" in shown


def test_a_failure_shows_the_last_words_of_the_installer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    succeeded, shown = run("print('hashes differ'); raise SystemExit(1)", capsys)

    assert not succeeded
    assert "two packages: failed" in shown
    assert "hashes differ" in shown


def test_an_environment_with_pip_uses_its_own(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    (tmp_path / "lib" / "python3.11" / "site-packages" / "pip").mkdir(parents=True)

    assert pip_of(python) == [str(python), "-m", "pip"]


def test_an_environment_without_pip_is_filled_from_outside(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"

    base, *arguments = pip_of(python)

    assert base != str(python)
    assert arguments == ["-m", "pip", "--python", str(python)]
