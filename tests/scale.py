"""How many times a test repeats: little at the desk, more in CI, most when asked for.

Seconds at the desk decide whether people run the tests at all; counts that prove something
(fuzz frames, model steps, crashes) belong to CI and to `./samsa test --long`.
"""

import os

IN_CI = os.environ.get("CI") == "true"
IS_LONG = os.environ.get("SAMSA_LONG") == "1"
# Set by `./samsa test` where nobody named a file: what needs a browser, a JVM or a foreign server
# is left out.
IS_DESK = os.environ.get("SAMSA_DESK") == "1"


def count(normal: int, ci: int, *, long: int | None = None) -> int:
    """Return `long` under SAMSA_LONG=1 (`ci` where none is given), `ci` in CI, else `normal`."""
    if IS_LONG:
        return ci if long is None else long
    return ci if IN_CI else normal
