"""Seals PASSWORD values, so that the database alone reveals none of them.

The keys are in a file outside of the database. The first key seals, all of them open, so that a
rotation can seal values again. A sealed value is bound to its connector and the name of its key:
it does not open in any other place of the database.
"""

import base64
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from brokers.key_files import KeyFile, read_keys, write_keys
from connectors.references import REFERENCE, references
from connectors.sdk.configs import MASK
from connectors.sdk.errors import ConnectorError
from connectors.sdk.secret_parts import of_urls, shown

KEY_BYTES: Final = 32  # AES-256
NONCE_BYTES: Final = 12  # The usual size for GCM.
# Enough to distinguish a handful of keys; reveals nothing about the key.
KEY_ID_CHARS: Final = 8
# The member with a sealed value in a stored config, where clear values are texts.
SEALED: Final = "sealed"
# Stored with it: the value for display, if only parts are secret.
SHOWN: Final = "shown"
Stored = Mapping[str, Any]
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Opened(str):
    """A formerly sealed value; prints as its displayable form, and is sealed again when stored.

    A text, like all values of a config before parsing. `shown` is a mask, or has masks in the place
    of those parts that are secrets.
    """

    __slots__ = ("shown",)
    shown: str

    def __new__(cls, text: str, shown: str = MASK) -> Self:
        made = super().__new__(cls, text)
        made.shown = shown
        return made

    def __repr__(self) -> str:
        return self.shown

    def __str__(self) -> str:
        return self.shown

    def __format__(self, spec: str) -> str:
        return format(self.shown, spec)

    def reveal(self) -> str:
        return str.__str__(self)


class CannotOpen(ConnectorError):
    """A sealed value that no key of this host opens; the text names the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The cluster and connector whose values are sealed."""

    cluster: str
    connector: str

    def of(self, key: str) -> bytes:
        return json.dumps([self.cluster, self.connector, key]).encode()


class Vault:
    """The keys of one file; thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = KeyFile(path, monotonic=time.monotonic)

    def seal(
        self,
        config: Mapping[str, str],
        hidden: Iterable[str],
        place: Place,
        *,
        partly: Mapping[str, str] = NOTHING,
        is_resolved: bool = False,
    ) -> Stored:
        """Return a config for storage, with the values of its hidden keys sealed.

        `partly` has the displayable forms of values of which only parts are secrets.

        A value that is only a reference is not sealed, unless references were resolved before. A
        formerly sealed value is sealed again, even if its key is not hidden any more.
        """
        whole = [key for key in hidden if is_resolved or not is_reference(config[key])]
        former = {key: text.shown for key, text in config.items() if isinstance(text, Opened)}
        seen = {**former, **dict.fromkeys(whole, MASK), **partly}
        return {
            key: self._row(text, place.of(key), seen[key]) if key in seen else text
            for key, text in config.items()
        }

    def open(self, stored: Stored, place: Place) -> dict[str, str]:
        """Return a stored config in clear; sealed values become Opened. Raises CannotOpen."""
        return {
            key: Opened(self._opened(value[SEALED], key, place), shown_as(value))
            if is_sealed(value)
            else value
            for key, value in stored.items()
        }

    def rotate(self) -> None:
        """Create a key that seals from now on; the former one still opens."""
        former = self._keys()
        write_keys(self.path, (new_key(), former[0]))

    def forget_former(self) -> None:
        """Drop the former key, once no value is sealed with it any more."""
        write_keys(self.path, read_keys(self.path)[:1])

    @property
    def key_id(self) -> str:
        """Return the id of the sealing key."""
        return id_of(self._keys()[0])

    def _row(self, text: str, place: bytes, shown: str) -> dict[str, str]:
        beside = {} if shown == MASK else {SHOWN: shown}
        return {SEALED: self._sealed(text, place), **beside}

    def _sealed(self, text: str, place: bytes) -> str:
        key, nonce = self._keys()[0], secrets.token_bytes(NONCE_BYTES)
        ciphered = AESGCM(bytes_of(key)).encrypt(nonce, revealed(text).encode(), place)
        return f"{id_of(key)}:{base64.b64encode(nonce + ciphered).decode()}"

    def _opened(self, sealed: str, name: str, place: Place) -> str:
        wanted, _, text = sealed.partition(":")
        # Read the file as well: another process may have just created the key.
        keys = {id_of(key): key for key in (*self._file.keys(), *self._read())}
        key = keys.get(wanted)
        if key is None:
            raise CannotOpen(
                f"{name} of {place.connector} was sealed with key {wanted}, which is not in"
                f" {self.path}: copy that file from the host where it was set, or set {name} again"
            )
        try:
            ciphered = base64.b64decode(text, validate=True)
            nonce = ciphered[:NONCE_BYTES]
            clear = AESGCM(bytes_of(key)).decrypt(nonce, ciphered[NONCE_BYTES:], place.of(name))
        except (ValueError, InvalidTag):
            raise CannotOpen(
                f"{name} of {place.connector} is damaged, or is that of another connector: set it"
                " again"
            ) from None
        return clear.decode()

    def _keys(self) -> tuple[str, ...]:
        """Return the keys; create the first one if necessary."""
        keys = self._file.keys() or self._read()
        if keys:
            return keys
        _create(self.path)
        return self._read()

    def _read(self) -> tuple[str, ...]:
        try:
            return read_keys(self.path)
        except FileNotFoundError:
            return ()


def is_sealed(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get(SEALED), str)


def masked(stored: Stored) -> dict[str, str]:
    """Return a stored config for display: references unchanged, and sealed values masked."""
    return {key: shown_as(value) for key, value in stored.items()}


def shown_as(value: object) -> str:
    """Return a stored value for display."""
    if isinstance(value, Mapping) and is_sealed(value):
        return str(value.get(SHOWN, MASK))
    # A value of an older release may have a password within a URL.
    text = str(value)
    return shown(text, of_urls(text))


def revealed(text: str) -> str:
    """Return a config value in clear."""
    return text.reveal() if isinstance(text, Opened) else text


def is_reference(text: str) -> bool:
    """Return whether a value consists of one reference."""
    return REFERENCE.fullmatch(text) is not None and next(references(text), None) is not None


def new_key() -> str:
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def id_of(key: str) -> str:
    return hashlib.sha256(bytes_of(key)).hexdigest()[:KEY_ID_CHARS]


def bytes_of(key: str) -> bytes:
    found = base64.b64decode(key)
    if len(found) != KEY_BYTES:
        raise CannotOpen(f"a key has {len(found)} bytes, not {KEY_BYTES}: restore the file of keys")
    return found


def _create(path: Path) -> None:
    """Create a file with a key, unless another process was faster."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    write_keys(draft, (new_key(),))
    try:
        # A link fails if the name exists; a rename would replace a key in use.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
