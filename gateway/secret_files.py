"""Secrets of one home: each a file that only its owner may read.

Several processes of a home start at once, so a secret that is missing is made beside its place and
linked there: whoever comes second finds the first one's and forgets its own.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

KEY_BYTES = 50  # what Django asks of a secret key


def random_text() -> str:
    return secrets.token_urlsafe(KEY_BYTES)


def read_or_make(path: Path) -> str:
    """Return the secret in a file, and make both where there is none."""
    with suppress(FileNotFoundError):
        return path.read_text(encoding="ascii").strip()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(f"{random_text()}\n")
        file.flush()
        os.fsync(file.fileno())
    # A link, not a rename: it fails where another process was faster.
    with suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()
    return path.read_text(encoding="ascii").strip()
