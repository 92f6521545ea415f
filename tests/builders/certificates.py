"""Certificates for this machine, by openssl: a test that needs one says `requires("openssl")`."""

import shutil
import subprocess
from pathlib import Path


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate of 127.0.0.1 that signs itself, and its key."""
    made, key = folder / "certificate.pem", folder / "key.pem"
    openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
        *("-days", "2", "-keyout", str(key), "-out", str(made)),
    )
    return made, key


def openssl(*arguments: str) -> None:
    program = shutil.which("openssl")
    assert program is not None, "the test says that it needs it"
    subprocess.run([program, *arguments], check=True, capture_output=True)
