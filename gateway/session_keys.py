"""The keys that sessions are signed with, as Django takes them: read whenever they are used.

Django's settings are fixed for the life of a process. These two are objects that look into the
agent's file each time Django asks, so a rotation reaches every web server without a restart, and
whoever signed in under the former key stays signed in.
"""

from collections import UserString
from collections.abc import Iterator

from django.core.exceptions import ImproperlyConfigured

from brokers.key_files import KeyFile


class SessionKey(UserString):
    """The key in use, for SECRET_KEY."""

    def __init__(self, file: KeyFile) -> None:
        # Without UserString's own, which would keep a copy.
        self._file = file

    @property
    def data(self) -> str:  # type: ignore[override]  # an attribute there, read each time here
        """Return the key of this moment; UserString asks for it whatever is done with the text."""
        keys = self._file.keys()
        if not keys:
            raise ImproperlyConfigured(
                f"{self._file.path} is not there: the agent writes it once the database answers;"
                f" start the home with `./samsa up`, and see `./samsa status` where it runs"
            )
        return keys[0]


class ValidKeys(list[str]):
    """All valid keys, for SECRET_KEY_FALLBACKS, which must be a list.

    The one in use is among them: a rotation may come between two questions of Django's, and what
    another web server signs at that moment must be valid here.
    """

    def __init__(self, file: KeyFile) -> None:
        super().__init__()
        self._file = file

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.keys())

    def __len__(self) -> int:
        return len(self._file.keys())
