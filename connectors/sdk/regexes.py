"""Regular expressions of connectors' configs, matched in linear time.

They come from whoever may create connectors, and Java's engine, as Python's, can be made to run for
years; RE2 cannot. It has no look-around and no back references, which are refused by its words.
"""

from typing import Any, Final

import re2  # type: ignore[import-untyped]

from connectors.sdk.errors import ConfigError

MAX_CHARS: Final = 4096
# What one compiled expression may take, its cache of states included.
MAX_MEMORY: Final = 1024 * 1024


def compile_checked(text: str) -> Any:
    """Return an expression ready for use; ConfigError says what is wrong with it."""
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
    """Check a key that holds an expression."""
    try:
        compile_checked(text or "")
    except ConfigError as error:
        return f"Must be a valid regular expression: {error}"
    return None


def _words(error: Exception) -> str:
    words = error.args[0] if error.args else "unknown"
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
