"""Compiles the regular expressions of configs, to be matched in linear time.

Any user who may create connectors writes them, and some expressions would keep Java's or Python's
engine busy for years, but not RE2. It has no look-around and no back references: RE2 refuses them.
"""

from typing import Any, Final

import re2  # type: ignore[import-untyped]

from connectors.sdk.errors import ConfigError

MAX_CHARS: Final = 4096
# The memory of a compiled expression, including its cache of states.
MAX_MEMORY: Final = 1024 * 1024


def compile_checked(text: str) -> Any:
    """Return a compiled expression; ConfigError names the error in it."""
    if len(text) > MAX_CHARS:
        raise ConfigError(
            f"the regular expression has {len(text)} characters, and {MAX_CHARS} are allowed"
        )
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise ConfigError(f"{text!r} is not a valid regular expression: {_words(error)}") from error


def wrong_with(text: Any) -> str | None:
    """Check a key with an expression."""
    try:
        compile_checked(text or "")
    except ConfigError as error:
        return f"Must be a valid regular expression: {error}"
    return None


def _words(error: Exception) -> str:
    words = error.args[0] if error.args else "unknown"
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
