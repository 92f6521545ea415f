"""What tests need beside Python packages is installed, or its absence is said in one sentence."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.installer import InstallError
from tests.suite import extras
from tests.suite.extras import Extra, ensure_extras, has_java


def java(folder: Path, version: str) -> None:
    program = folder / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("version", "is_enough"), [("17.0.15", True), ("21", True), ("11.0.2", False), ("1.8.0", False)]
)
def test_java_counts_from_17_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, *, is_enough: bool
) -> None:
    java(tmp_path, version)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")

    assert has_java() == is_enough


def test_no_java_is_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert not has_java()


def refuse() -> None:
    raise InstallError("only root may")


@pytest.fixture
def one_extra(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    def put(ensure: Callable[[], None]) -> None:
        extra = Extra(name="x", is_here=lambda: False, ensure=ensure, missing="no x: get x")
        monkeypatch.setattr(extras, "EXTRAS", {"x": extra})

    return put


def test_at_the_desk_a_missing_extra_is_said_and_the_tests_start(
    one_extra: Callable[[Callable[[], None]], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    one_extra(refuse)
    monkeypatch.delenv("CI", raising=False)

    assert ensure_extras(extras.EXTRAS)
    assert capsys.readouterr().err == "no x: get x\n  (only root may)\n"


@pytest.mark.parametrize(("user", "may_start"), [(0, False), (1000, True)])
def test_in_ci_root_must_have_every_extra(
    one_extra: Callable[[Callable[[], None]], None],
    monkeypatch: pytest.MonkeyPatch,
    user: int,
    *,
    may_start: bool,
) -> None:
    one_extra(refuse)
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(os, "geteuid", lambda: user)

    assert ensure_extras(extras.EXTRAS) == may_start


def test_in_ci_root_goes_without_what_is_not_required(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = Extra(
        name="x", is_here=lambda: False, ensure=refuse, missing="no x: get x", is_required=False
    )
    monkeypatch.setattr(extras, "EXTRAS", {"x": extra})
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    assert ensure_extras(extras.EXTRAS)
    assert capsys.readouterr().err == "no x: get x\n  (only root may)\n"
