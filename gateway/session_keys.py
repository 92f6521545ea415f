"""The keys that sign sessions, read from the agent's file whenever Django uses them.

Django's settings are fixed for the life of a process. These two objects read the agent's file each
time, so a rotation reaches every web server without a restart, and users who signed in with the
former key stay signed in.
"""

from collections import UserString
from collections.abc import Iterator

from django.core.exceptions import ImproperlyConfigured

from brokers.key_files import KeyFile


class SessionKey(UserString):
    """The key in use, for SECRET_KEY."""

    def __init__(self, file: KeyFile) -> None:
        # Do not call UserString's own, which would keep a copy.
        self._file = file

    @property
    def data(self) -> str:  # type: ignore[override]  # an attribute there, read each time here
        """Return the present key; UserString reads this attribute for every operation."""
        keys = self._file.keys()
        if not keys:
            raise ImproperlyConfigured(
                f"{self._file.path} is not there: the agent writes it once the database answers;"
                f" start the home with `./samsa up`, and see `./samsa status` where it runs"
            )
        return keys[0]


class ValidKeys(list[str]):
    """All valid keys, for SECRET_KEY_FALLBACKS, which must be a list.

    Includes the present one: a rotation may happen between two reads of Django, and what another
    web server signs at that moment must be valid here.
    """

    def __init__(self, file: KeyFile) -> None:
        super().__init__()
        self._file = file

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.keys())

    def __len__(self) -> int:
        return len(self._file.keys())
