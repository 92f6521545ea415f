"""Checks the certificate and key files for TLS before any process starts."""

import ssl
from pathlib import Path

from brokers.supervisor.errors import StartRefused


def require_usable(certificate: Path, key: Path) -> None:
    """Refuse files that cannot be read, are not PEM, do not match, or need a passphrase."""
    try:
        # Each process would prompt for a passphrase on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            certificate, key, password=lambda: ""
        )
    except (OSError, ValueError) as error:
        words = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise StartRefused(
            f"--web-cert {certificate} and --web-key {key} cannot serve TLS ({words}):"
            " give a certificate chain and its private key, both PEM, without a passphrase"
        ) from error
