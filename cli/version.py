"""The version of this checkout."""

from typing import Final

VERSION: Final = "0.1.0.dev0"
