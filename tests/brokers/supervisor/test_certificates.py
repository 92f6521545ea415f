"""Which files can serve TLS."""

from pathlib import Path

import pytest

from brokers.supervisor.certificates import require_usable
from brokers.supervisor.errors import StartRefused
from tests.builders.certificates import certificate, openssl
from tests.extras import requires

pytestmark = requires("openssl")


def test_a_certificate_with_its_key_passes(tmp_path: Path) -> None:
    require_usable(*certificate(tmp_path))


@pytest.mark.parametrize(
    ("kept", "words"),
    [("certificate", "No such file"), ("nothing", "No such file")],
)
def test_files_that_are_not_there_are_named(tmp_path: Path, kept: str, words: str) -> None:
    made, key = certificate(tmp_path)
    key.unlink()
    if kept == "nothing":
        made.unlink()

    with pytest.raises(StartRefused, match=words):
        require_usable(made, key)


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    made, _ = certificate(tmp_path)
    _, other = certificate(tmp_path / "other")

    with pytest.raises(StartRefused, match="MISMATCH"):
        require_usable(made, other)


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    made, key = certificate(tmp_path)
    locked = tmp_path / "locked.pem"
    openssl("ec", "-in", str(key), "-aes128", "-passout", "pass:secret", "-out", str(locked))

    with pytest.raises(StartRefused, match="without a passphrase"):
        require_usable(made, locked)
