"""References in configs: which are followed, to what, and what of it may be shown."""

from pathlib import Path

import pytest

from connectors.providers import Sources, properties, resolve
from connectors.references import Allowed
from connectors.sdk.errors import ConfigError
from connectors.vault import Opened


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "db.properties").write_text("# a\nuser=me\n password : s3cret=1\n")
    (tmp_path / "closed").write_text("password=top")
    (tmp_path / "open" / "link").symlink_to(tmp_path / "closed")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "db").write_text("from-file\n")
    return Sources(
        allowed=Allowed(folders=(str(tmp_path / "open"),), names=frozenset({"REGION"})),
        secrets=tmp_path / "secrets",
        environment={"REGION": "eu-1", "PATH": "/bin"},
    )


def test_references_are_followed_and_their_values_known_as_secrets(
    sources: Sources, tmp_path: Path
) -> None:
    config = {
        "a": f"x-${{file:{tmp_path}/open/db.properties:password}}-y",
        "b": "${env:REGION}",
        "c": "${secret:db}",
        "d": "plain ${other:thing}",
        "e": Opened("sealed"),
    }

    clear = resolve(config, sources)

    assert clear.config == {
        "a": "x-s3cret=1-y",
        "b": "eu-1",
        "c": "from-file",
        "d": "plain ${other:thing}",
        "e": "sealed",
    }
    assert set(clear.secrets) == {"s3cret=1", "eu-1", "from-file", "sealed"}
    assert "s3cret" not in repr(clear)


def test_a_value_that_looks_like_a_reference_is_not_followed(sources: Sources) -> None:
    (sources.secrets / "db").write_text("${env:REGION}")

    assert resolve({"a": "${secret:db}"}, sources).config == {"a": "${env:REGION}"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${env:PATH}", "add PATH to SAMSA_CONNECT_ENV_NAMES"),
        ("${file:/etc/passwd:root}", "SAMSA_CONNECT_SECRET_DIRS"),
        ("${file:{home}/open/../closed:password}", "SAMSA_CONNECT_SECRET_DIRS"),
        ("${file:{home}/open/link:password}", "leads out of the folders"),
        ("${file:{home}/open:password}", "cannot be read"),
        ("${file:{home}/open/nobody:password}", "cannot be read"),
        ("${file:{home}/open/db.properties:nothing}", "has no key nothing"),
        ("${file:relative:a}", "SAMSA_CONNECT_SECRET_DIRS"),
        ("${file:a}", "names no key"),
        ("${secret:../admin-password}", "names no secret"),
        ("${secret:.hidden}", "names no secret"),
        ("${secret:nobody}", "write the value into this file"),
    ],
)
def test_a_reference_that_leads_nowhere_or_too_far_is_refused(
    sources: Sources, tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=r"^a: ") as refusal:
        resolve({"a": text.replace("{home}", str(tmp_path))}, sources)

    assert words in str(refusal.value)


def test_a_file_that_is_too_large_is_not_read_whole(sources: Sources) -> None:
    (sources.secrets / "db").write_bytes(b"x" * 300_000)

    with pytest.raises(ConfigError, match="more than 262144 bytes"):
        resolve({"a": "${secret:db}"}, sources)


def test_properties_are_read_as_java_writes_them() -> None:
    assert properties("a=1\n! c\nb:2\nc = x:y \nd") == {"a": "1", "b": "2", "c": "x:y", "d": ""}
