"""Where the home is, and what its agent writes there for the web server.

Beside the settings, because those are fixed once read: what waits for the agent's files must know
where they are before.
"""

import os
from pathlib import Path
from typing import Final

SAMSA_HOME: Final = Path(os.environ.get("SAMSA_HOME") or ".samsa").absolute()
# Tools that only look at the code name no home, and must not make one.
IS_NAMED: Final = bool(os.environ.get("SAMSA_HOME"))
SAMSA_SECRETS: Final = SAMSA_HOME / "secrets"
SESSION_KEYS: Final = SAMSA_SECRETS / "session"
CLUSTER_ID: Final = SAMSA_HOME / "cluster-id"
# The trusted proxies in front, as an operator wrote them; the settings judge that.
PROXIES: Final = os.environ.get("SAMSA_TRUSTED_PROXIES", "").strip()
HAS_PROXY: Final = bool(PROXIES)


def missing() -> list[Path]:
    """Return the files without which the console cannot serve and that are not there yet."""
    if not IS_NAMED:
        return []
    return [file for file in (CLUSTER_ID, SESSION_KEYS) if not file.exists()]
