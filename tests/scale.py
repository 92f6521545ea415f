"""How many times a test repeats: few times at the desk and in CI, many when asked for.

What proves by repetition (fuzz frames, model steps, kills) runs from a fixed seed at the desk and
in CI: enough to meet every kind of step, and to fail on the broken builds that prove the test.
The campaign that looks for what nobody thought of belongs to `./samsa test --long`.
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
