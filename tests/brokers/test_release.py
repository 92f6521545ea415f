"""A home of a newer release is refused by name, before anything is written."""

import json
from pathlib import Path

import pytest

from brokers import release


def test_a_home_of_this_release_or_an_older_one_is_no_newer_one(tmp_path: Path) -> None:
    assert release.refusal(tmp_path) == "", "it has no such file"
    (tmp_path / release.RELEASE_FILE).write_text(release.note())
    assert release.refusal(tmp_path) == ""
    older = {"release": "0.0.1", "migrations": ["controlplane.0001_first_tables"]}
    (tmp_path / release.RELEASE_FILE).write_text(json.dumps(older))
    assert release.refusal(tmp_path) == ""


def test_a_newer_one_is_named_with_what_is_unknown_and_what_to_do(tmp_path: Path) -> None:
    newer = {
        "release": "9.9 (0123456789ab)",
        "migrations": [*release.migrations(), *(f"controlplane.900{n}_more" for n in range(5))],
    }
    (tmp_path / release.RELEASE_FILE).write_text(json.dumps(newer))

    refusal = release.refusal(tmp_path)

    assert f"{tmp_path} was written by 9.9 (0123456789ab), and this is the older" in refusal
    assert release.name() in refusal
    assert "controlplane.9000_more, controlplane.9001_more, controlplane.9002_more and 2 more" in (
        refusal
    )
    assert refusal.endswith("start it with the newer release, or give another --home")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"release": 1}'])
def test_a_damaged_file_leaves_the_decision_to_the_databases(tmp_path: Path, text: str) -> None:
    (tmp_path / release.RELEASE_FILE).write_text(text)

    assert release.refusal(tmp_path) == ""


def test_a_checkout_is_named_by_its_commit_with_and_without_packed_refs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "ROOT", tmp_path)
    assert release.name() == release.VERSION
    git = tmp_path / ".git"
    (git / "refs/heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{'a' * 40} refs/heads/main\n")
    assert release.name() == f"{release.VERSION} (aaaaaaaaaaaa)"
    (git / "refs/heads/main").write_text(f"{'b' * 40}\n")
    assert release.name() == f"{release.VERSION} (bbbbbbbbbbbb)"
    (git / "HEAD").write_text(f"{'c' * 40}\n")
    assert release.name() == f"{release.VERSION} (cccccccccccc)"
